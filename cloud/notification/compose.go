package notification

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locale"
)

// Letter is a mail in words. Subject is one line.
type Letter struct{ Subject, Text, HTML string }

// wording are the words of each kind of mail.
var wording = map[cloud.NotificationKind]struct{ subject, body, link string }{
	cloud.NotifyInvitation:     {"mail.subject.invitation", "mail.body.invitation", "mail.link.invitation"},
	cloud.NotifyReset:          {"mail.subject.reset", "mail.body.reset", "mail.link.reset"},
	cloud.NotifyAdminReset:     {"mail.subject.admin_reset", "mail.body.admin_reset", "mail.link.admin_reset"},
	cloud.NotifyAdminPassword:  {"mail.subject.admin_password", "mail.body.admin_password", ""},
	cloud.NotifyPassword:       {"mail.subject.password", "mail.body.password", ""},
	cloud.NotifyPasskey:        {"mail.subject.passkey", "mail.body.passkey", ""},
	cloud.NotifyFactorRemoved:  {"mail.subject.factor_removed", "mail.body.factor_removed", ""},
	cloud.NotifyParcelWaiting:  {"mail.subject.parcel_waiting", "mail.body.parcel_waiting", ""},
	cloud.NotifyParcelCode:     {"mail.subject.parcel_code", "mail.body.parcel_code", ""},
	cloud.NotifyParcelReminder: {"mail.subject.parcel_reminder", "mail.body.parcel_reminder", ""},
	cloud.NotifyParcelOverdue:  {"mail.subject.parcel_overdue", "mail.body.parcel_overdue", ""},

	cloud.NotifyDropoffCode:     {"mail.subject.dropoff_code", "mail.body.dropoff_code", "mail.parcel.sender_link"},
	cloud.NotifyParcelCollected: {"mail.subject.parcel_collected", "mail.body.parcel_collected", ""},
}

// letter is what the HTML of a mail is made of.
type letter struct {
	Lang, Subject, Link, Button, Foot string
	Lines                             []string
	Code                              string
	Facts                             []fact
}

// fact is a line of what a mail is about.
type fact struct{ Name, Value string }

// page has no images, styles or scripts of others: nothing is loaded when it is read.
var page = template.Must(template.New("mail").Parse(`<!doctype html>
<html lang="{{.Lang}}"><head><meta charset="utf-8"><title>{{.Subject}}</title></head>
<body style="font-family:sans-serif;line-height:1.5;max-width:36em">
{{range .Lines}}<p>{{.}}</p>
{{end}}{{with .Code}}<p style="font-size:2.25em;letter-spacing:.12em;margin:.5em 0"><strong>{{.}}</strong></p>
{{end}}{{range .Facts}}<p>{{.Name}}<br><strong>{{.Value}}</strong></p>
{{end}}{{if .Link}}<p><a href="{{.Link}}">{{.Button}}</a></p>
<p>{{.Link}}</p>
{{end}}<p><small>{{.Foot}}</small></p>
</body></html>
`))

// Compose writes a mail in its language, as plain text and as HTML, for a reader at now: a
// time limit that has passed is left out.
func Compose(m cloud.Notification, now time.Time) (Letter, error) {
	m.Language = locale.Negotiate(m.Language)
	business, name := oneLine(cmp.Or(m.Business, "Postern")), oneLine(m.Name)
	word := func(key string, args ...any) string { return locale.Word(m.Language, key, args...) }
	said, ok := wording[m.Kind]
	if !ok {
		return Letter{}, fmt.Errorf("%w: there are no words for mails of kind %q", ErrRefused, m.Kind)
	}
	l := letter{Lang: m.Language, Subject: word(said.subject, business), Link: m.Link, Lines: []string{word("mail.hello", name), word(said.body, business)}, Foot: word("mail.foot", business)}
	switch {
	case m.Parcel != nil:
		l.Code, l.Facts, l.Button = oneLine(m.Parcel.Code), parcelFacts(m, now), word(cmp.Or(said.link, "mail.parcel.link"))
		if l.Code != "" {
			l.Lines[1] += " " + word("mail.parcel.code")
		}
	case l.Link != "":
		l.Button = word(said.link)
		l.Lines = append(l.Lines, word("mail.once"))
	default:
		l.Lines = append(l.Lines, word("mail.not_you"))
	}
	var html bytes.Buffer
	if err := page.Execute(&html, l); err != nil {
		return Letter{}, fmt.Errorf("compose mail %s: %w", m.ID, err)
	}
	text := strings.Join(l.Lines, "\n\n") + "\n\n"
	if l.Code != "" {
		text += l.Code + "\n\n"
	}
	for _, f := range l.Facts {
		text += f.Name + ": " + f.Value + "\n\n"
	}
	if l.Link != "" {
		text += l.Button + ":\n" + l.Link + "\n\n"
	}
	return Letter{Subject: l.Subject, Text: text + "-- \n" + l.Foot + "\n", HTML: html.String()}, nil
}

// parcelFacts are what the reader of a mail about a parcel needs beside the code.
func parcelFacts(m cloud.Notification, now time.Time) []fact {
	lang, p, by, until := m.Language, *m.Parcel, "mail.parcel.until", ""
	if m.Kind == cloud.NotifyDropoffCode {
		by = "mail.parcel.bring"
	}
	if p.Until.After(now) {
		until = locale.DateHour(lang, p.Until)
	}
	facts := []fact{
		{locale.Word(lang, "mail.parcel.locker"), oneLine(strings.Join(filled(p.Locker, p.Address), ", "))},
		{locale.Word(lang, "mail.parcel.door"), oneLine(strings.Join(p.Doors, ", "))},
		{locale.Word(lang, by), until},
		{locale.Word(lang, "mail.parcel.number"), oneLine(strings.Join(p.Numbers, ", "))},
	}
	return slices.DeleteFunc(facts, func(f fact) bool { return f.Value == "" })
}

// oneLine is a text without what could end a line of a mail, or turn what follows round.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r)
	}), " ")
}
