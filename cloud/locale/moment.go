package locale

import (
	"strconv"
	"strings"
	"time"
)

// weekdays begin with Sunday, months with January: of texts that stand after a comma or
// alone.
var weekdays = [...]texts{
	{"Sunday", "星期日", "星期日", "dimanche", "Sonntag", "domingo"},
	{"Monday", "星期一", "星期一", "lundi", "Montag", "lunes"},
	{"Tuesday", "星期二", "星期二", "mardi", "Dienstag", "martes"},
	{"Wednesday", "星期三", "星期三", "mercredi", "Mittwoch", "miércoles"},
	{"Thursday", "星期四", "星期四", "jeudi", "Donnerstag", "jueves"},
	{"Friday", "星期五", "星期五", "vendredi", "Freitag", "viernes"},
	{"Saturday", "星期六", "星期六", "samedi", "Samstag", "sábado"},
}

var months = [...]texts{
	{"Jan", "1月", "1月", "janv.", "Jan.", "ene"}, {"Feb", "2月", "2月", "févr.", "Feb.", "feb"}, {"Mar", "3月", "3月", "mars", "März", "mar"},
	{"Apr", "4月", "4月", "avr.", "Apr.", "abr"}, {"May", "5月", "5月", "mai", "Mai", "may"}, {"Jun", "6月", "6月", "juin", "Juni", "jun"},
	{"Jul", "7月", "7月", "juil.", "Juli", "jul"}, {"Aug", "8月", "8月", "août", "Aug.", "ago"}, {"Sep", "9月", "9月", "sept.", "Sept.", "sept"},
	{"Oct", "10月", "10月", "oct.", "Okt.", "oct"}, {"Nov", "11月", "11月", "nov.", "Nov.", "nov"}, {"Dec", "12月", "12月", "déc.", "Dez.", "dic"},
}

var (
	justNow   = texts{"just now", "刚刚", "剛剛", "à l’instant", "gerade eben", "ahora mismo"}
	minsAgo   = texts{"%d min ago", "%d 分钟前", "%d 分鐘前", "il y a %d min", "vor %d Min.", "hace %d min"}
	inMins    = texts{"in %d min", "%d 分钟后", "%d 分鐘後", "dans %d min", "in %d Min.", "en %d min"}
	today     = texts{"today", "今天", "今天", "aujourd’hui", "heute", "hoy"}
	yesterday = texts{"yesterday", "昨天", "昨天", "hier", "gestern", "ayer"}
	tomorrow  = texts{"tomorrow", "明天", "明天", "demain", "morgen", "mañana"}
	// day and month, and with a year: %[1]d the day, %[2]s the month, %[3]d the year.
	dayMonth = texts{"%[1]d %[2]s", "%[2]s%[1]d日", "%[2]s%[1]d日", "%[1]d %[2]s", "%[1]d. %[2]s", "%[1]d %[2]s"}
	fullDate = texts{"%[1]d %[2]s %[3]d", "%[3]d年%[2]s%[1]d日", "%[3]d年%[2]s%[1]d日", "%[1]d %[2]s %[3]d", "%[1]d. %[2]s %[3]d", "%[1]d %[2]s %[3]d"}
)

// Ago is the pattern of a time less than an hour ago: %d are the minutes.
func Ago(lang string) string { return minsAgo[index(lang)] }

// Moment is a time in words as seen at now: minutes within the hour, a clock today, a day
// and a clock within the week, else a date. Days are those of t's zone.
func Moment(lang string, t, now time.Time) string {
	i := index(lang)
	now = now.In(t.Location())
	switch d := now.Sub(t); {
	case d >= 0 && d < time.Minute:
		return justNow[i]
	case d > 0 && d < time.Hour:
		return format(minsAgo[i], []any{int(d / time.Minute)})
	case d < 0 && d > -time.Hour:
		return format(inMins[i], []any{int(-d/time.Minute) + 1})
	}
	return Clock(lang, t, now)
}

// Clock is a time in words without minutes that count.
func Clock(lang string, t, now time.Time) string {
	i := index(lang)
	now = now.In(t.Location())
	switch days := dayNumber(t) - dayNumber(now); {
	case days == 0:
		return clock(i, t)
	case days == -1:
		return join(i, yesterday[i], clock(i, t))
	case days == 1:
		return join(i, tomorrow[i], clock(i, t))
	case days > -7 && days < 7:
		return join(i, weekdays[t.Weekday()][i], clock(i, t))
	}
	return date(i, t, now)
}

// Weekday is the name of a day of the week.
func Weekday(lang string, d time.Weekday) string { return weekdays[d][index(lang)] }

// Day is a day in words: today and its neighbours, a weekday within the week, else a date.
func Day(lang string, t, now time.Time) string {
	i := index(lang)
	switch days := dayNumber(t) - dayNumber(now); {
	case days == 0:
		return today[i]
	case days == -1:
		return yesterday[i]
	case days == 1:
		return tomorrow[i]
	case days > -7 && days < 7:
		return weekdays[t.Weekday()][i]
	}
	return date(i, t, now)
}

// Date is a day with its year, DayMonth without, DateHour with its hour.
func Date(lang string, t time.Time) string     { return date(index(lang), t, time.Time{}) }
func DayMonth(lang string, t time.Time) string { return date(index(lang), t, t) }
func DateHour(lang string, t time.Time) string {
	i := index(lang)
	return join(i, date(i, t, t), clock(i, t))
}

// date is the day and month of a time, and its year where that is not now's.
func date(i int, t, now time.Time) string {
	f := fullDate
	if t.Year() == now.Year() {
		f = dayMonth
	}
	// A format that leaves an argument out would say so.
	r := strings.NewReplacer("%[1]d", strconv.Itoa(t.Day()), "%[2]s", months[t.Month()-1][i], "%[3]d", strconv.Itoa(t.Year()))
	return r.Replace(f[i])
}

// TimeOfDay is the hour and minute of a time.
func TimeOfDay(lang string, t time.Time) string { return clock(index(lang), t) }

func dayNumber(t time.Time) int {
	y, m, d := t.Date()
	return int(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

// clock is the time of day: twelve hours in English, where a morning says no more.
func clock(i int, t time.Time) string {
	switch {
	case languages[i] != English:
		return t.Format("15:04")
	case t.Hour() >= 12 || t.Hour() == 0:
		return t.Format("3:04 pm")
	}
	return t.Format("3:04")
}

func join(i int, day, at string) string {
	if languages[i] == SimplifiedChinese || languages[i] == TraditionalChinese {
		return day + " " + at
	}
	return day + ", " + at
}
