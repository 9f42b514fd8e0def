package notification

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
)

// ShortMessage is a short message as it is sent.
type ShortMessage struct {
	Text     string
	Language string
	Encoding string // gsm7 or ucs2 (3GPP TS 23.038)
	Segments int    // messages that it is carried in and charged as
}

// Encodings of short messages.
const (
	GSM7 = "gsm7"
	UCS2 = "ucs2"
)

// maxSegments is how many messages a text is carried in, unless the compartments alone fill
// more.
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

	cloud.NotifyDropoffCode:     "sms.dropoff_code",
	cloud.NotifyParcelCollected: "sms.parcel_collected",
}

// ComposeSMS writes a short message in its language, for a reader at now. Code, compartments
// and a time limit that has not passed are always in it. Until two messages hold it, parcel
// numbers give way, then the link, letters that would halve what a message holds, the locker's
// address, the ends of names, and the names.
func ComposeSMS(m cloud.Notification, now time.Time) (ShortMessage, error) {
	key, ok := smsWords[m.Kind]
	if !ok || m.Parcel == nil {
		return ShortMessage{}, fmt.Errorf("%w: there are no words for short messages of kind %q", ErrRefused, m.Kind)
	}
	p := *m.Parcel
	m.Language = locale.Negotiate(m.Language)
	word := func(key string, args ...any) string { return locale.Word(m.Language, key, args...) }
	until := ""
	switch {
	case !p.Until.After(now):
	case m.Kind == cloud.NotifyDeliveryCode, m.Kind == cloud.NotifyDropoffCode:
		until = word("sms.deliver_before", locale.DateHour(m.Language, p.Until))
	default:
		until = word("sms.until", locale.DateHour(m.Language, p.Until))
	}
	business, place := oneLine(cmp.Or(m.Business, "Postern")), oneLine(p.Locker)
	address, numbers, link := oneLine(p.Address), oneLine(strings.Join(p.Numbers, ", ")), m.Link
	for folds := false; ; {
		parts := []string{word(key, business), "", "", "", until, numbers, link}
		if p.Code != "" {
			parts[1] = word("sms.code", oneLine(p.Code))
		}
		if where := filled(place, address); len(where) > 0 {
			parts[2] = strings.Join(where, ", ") + "."
		}
		if len(p.Doors) > 0 {
			parts[3] = word("sms.door", oneLine(strings.Join(p.Doors, ", ")))
		}
		out := ShortMessage{Text: plainSigns.Replace(strings.Join(filled(parts...), " ")), Language: m.Language}
		if folds {
			out.Text = fold(out.Text)
		}
		out.Encoding, out.Segments = measure(out.Text)
		switch {
		case out.Segments <= maxSegments:
			return out, nil
		case numbers != "":
			numbers = ""
		case link != "":
			link = ""
		case !folds && canFold(out.Text):
			folds = true
		case address != "":
			address = ""
		case max(size(place), size(business)) > shortName:
			if size(place) > size(business) {
				place = shorter(place)
			} else {
				business = shorter(business)
			}
		case place != "":
			place = ""
		default: // many compartments: none is left out
			return out, nil
		}
	}
}

// canFold reports whether a text has letters that fold replaces, and fold makes it one of the
// 7-bit alphabet.
func canFold(text string) bool {
	encoding, _ := measure(text)
	after, _ := measure(fold(text))
	return encoding == UCS2 && after == GSM7
}

// fold replaces letters that the 7-bit alphabet lacks by those without their marks, as people
// write them in short messages: ó is o, û is u.
func fold(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(gsmBasic+gsmExtended, r) {
			return r
		}
		if plain, ok := struck[r]; ok {
			return plain
		}
		if bare, _ := utf8.DecodeRuneInString(norm.NFD.String(string(r))); strings.ContainsRune(gsmBasic, bare) {
			return bare
		}
		return r
	}, norm.NFC.String(text))
}

// struck are letters whose marks Unicode does not take apart.
var struck = map[rune]rune{'ł': 'l', 'Ł': 'L', 'đ': 'd', 'Đ': 'D', 'ı': 'i', 'œ': 'o', 'Œ': 'O', 'ħ': 'h', 'Ħ': 'H'}

// To how many characters names are cut at least and at most.
const (
	shortName = 12
	longName  = 60 // at once
)

// shorter is a name without its last characters.
func shorter(name string) string {
	r := []rune(name)
	return strings.TrimSpace(string(r[:min(max(shortName, len(r)-4), longName)]))
}

func size(s string) int { return utf8.RuneCountInString(s) }

// filled are the texts that are not empty.
func filled(parts ...string) []string {
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
}
