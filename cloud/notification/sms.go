package notification

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
)

// ShortMessage is a short message as it is sent.
type ShortMessage struct {
	Text     string
	Encoding string // gsm7 or ucs2 (3GPP TS 23.038)
	Segments int    // messages that it is carried in and charged as: 1 or 2
}

// Encodings of short messages.
const (
	GSM7 = "gsm7"
	UCS2 = "ucs2"
)

// maxSegments is how many messages a text is carried in at most.
const maxSegments = 2

// The alphabet of 3GPP TS 23.038, 6.2.1, and its extension, whose characters count twice.
const (
	gsmBasic    = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
	gsmExtended = "\f^{}\\[~]|€"
)

// plainSigns are the signs of careful typography that would halve what a message holds,
// with those of the alphabet that read alike, and what Chinese leaves out.
var plainSigns = strings.NewReplacer("’", "'", "‘", "'", "“", `"`, "”", `"`, "„", `"`, "–", "-", "—", "-", "…", "...", "\u202f", " ", "\u00a0", " ", "。 ", "。")

// measure is how a text is carried: its encoding, and in how many messages.
func measure(text string) (encoding string, segments int) {
	var sizes []int // of each character, which no two messages share
	for _, r := range text {
		switch {
		case strings.ContainsRune(gsmBasic, r):
			sizes = append(sizes, 1)
		case strings.ContainsRune(gsmExtended, r):
			sizes = append(sizes, 2)
		default:
			sizes = nil
			for _, r := range text {
				sizes = append(sizes, len(utf16.Encode([]rune{r})))
			}
			return UCS2, segmentsOf(sizes, 70, 67)
		}
	}
	return GSM7, segmentsOf(sizes, 160, 153)
}

// segmentsOf is in how many messages characters go: one of single, or several of part each.
func segmentsOf(sizes []int, single, part int) int {
	total, parts, room := 0, 0, 0
	for _, n := range sizes {
		total += n
		if room < n {
			parts, room = parts+1, part
		}
		room -= n
	}
	if total <= single {
		return 1
	}
	return parts
}

// smsWords are the words of each kind of notification that goes by SMS, with the sender's
// name.
var smsWords = map[cloud.NotificationKind]string{
	cloud.NotifyParcelWaiting:  "sms.parcel_waiting",
	cloud.NotifyParcelCode:     "sms.parcel_code",
	cloud.NotifyParcelReminder: "sms.parcel_reminder",
	cloud.NotifyParcelOverdue:  "sms.parcel_overdue",
	cloud.NotifyDeliveryCode:   "sms.delivery_code",
}

// ComposeSMS writes a short message in its language. Code, compartments and a time limit
// that has not passed are always in it; parcel numbers, the locker's address, then the ends of names give way until
// two messages hold it.
func ComposeSMS(m cloud.Notification) (ShortMessage, error) {
	key, ok := smsWords[m.Kind]
	if !ok || m.Parcel == nil {
		return ShortMessage{}, fmt.Errorf("%w: there are no words for short messages of kind %q", ErrRefused, m.Kind)
	}
	p := *m.Parcel
	m.Language = locale.Negotiate(m.Language)
	word := func(key string, args ...any) string { return locale.Word(m.Language, key, args...) }
	until := word("sms.until", locale.DateHour(m.Language, p.Until))
	switch m.Kind {
	case cloud.NotifyDeliveryCode:
		until = word("sms.deliver_before", locale.DateHour(m.Language, p.Until))
	case cloud.NotifyParcelOverdue:
		until = ""
	}
	business, place := oneLine(cmp.Or(m.Business, "Postern")), oneLine(p.Locker)
	address, numbers := oneLine(p.Address), oneLine(strings.Join(p.Numbers, ", "))
	for {
		parts := []string{word(key, business), word("sms.code", oneLine(p.Code)), strings.Join(filled(place, address), ", ") + ".", "", until, numbers}
		if len(p.Doors) > 0 {
			parts[3] = word("sms.door", oneLine(strings.Join(p.Doors, ", ")))
		}
		out := ShortMessage{Text: plainSigns.Replace(strings.Join(filled(parts...), " "))}
		out.Encoding, out.Segments = measure(out.Text)
		switch {
		case out.Segments <= maxSegments:
			return out, nil
		case numbers != "":
			numbers = ""
		case address != "":
			address = ""
		case max(size(place), size(business)) > shortName:
			if size(place) > size(business) {
				place = shorter(place)
			} else {
				business = shorter(business)
			}
		default: // doors without end
			return out, fmt.Errorf("%w: the short message has %d parts", ErrRefused, out.Segments)
		}
	}
}

// shortName is to how many characters names are cut at most.
const shortName = 12

// shorter is a name without its last characters.
func shorter(name string) string {
	r := []rune(name)
	return strings.TrimSpace(string(r[:max(shortName, len(r)-4)]))
}

func size(s string) int { return utf8.RuneCountInString(s) }

// filled are the texts that are not empty.
func filled(parts ...string) []string {
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" || s == "." })
}
