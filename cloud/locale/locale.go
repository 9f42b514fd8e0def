// Package locale holds what people read, in six languages, as Go tables: error
// messages by public code, labels of tracking statuses, and the words of the
// pages. Codes, enum values and field names never change with the language.
//
// Everything here is read only after the program started and safe for
// concurrent use. An unknown language is English; an unknown key answers with
// what ok says, never with a panic.
package locale

import (
	"fmt"
	"strings"

	"golang.org/x/text/language"

	"github.com/postern-io/postern/protocol/otep"
)

// Languages, as they stand in a page's lang attribute and in Caller.Language.
const (
	English            = "en"
	SimplifiedChinese  = "zh-Hans"
	TraditionalChinese = "zh-Hant"
	French             = "fr"
	German             = "de"
	Spanish            = "es"
)

// texts is one message in every language, in the order of languages.
type texts [6]string

var languages = [len(texts{})]string{English, SimplifiedChinese, TraditionalChinese, French, German, Spanish}

// names are the languages' names for themselves.
var names = [len(texts{})]string{"English", "简体中文", "繁體中文", "Français", "Deutsch", "Español"}

var matcher = func() language.Matcher {
	tags := make([]language.Tag, len(languages))
	for i, l := range languages {
		tags[i] = language.MustParse(l)
	}
	return language.NewMatcher(tags)
}()

// Language is a language with its name for itself.
type Language struct{ Code, Name string }

// All lists the languages, English first.
func All() []Language {
	out := make([]Language, len(languages))
	for i := range languages {
		out[i] = Language{languages[i], names[i]}
	}
	return out
}

// maxHeader bounds what is read of an Accept-Language header.
const maxHeader = 512

// Negotiate picks the language for an Accept-Language header (RFC 9110
// 12.5.4): the best of ours by the caller's weights, where zh-TW and zh-HK are
// zh-Hant and other zh is zh-Hans. It is English when nothing fits or the
// header is unreadable.
func Negotiate(header string) string {
	if header == "" || len(header) > maxHeader {
		return English
	}
	tags, _, err := language.ParseAcceptLanguage(header)
	if err != nil || len(tags) == 0 {
		return English
	}
	_, i, confidence := matcher.Match(tags...)
	if confidence == language.No {
		return English
	}
	return languages[i]
}

// Known reports whether lang is one of ours, spelled as ours.
func Known(lang string) bool { return languages[index(lang)] == lang }

func index(lang string) int {
	for i, l := range languages {
		if l == lang {
			return i
		}
	}
	return 0
}

// moreOf are the errors that have one sentence more where they have figures: of members beyond
// those that are named, of the roomiest compartment.
var moreOf = map[string]string{"VALIDATION_FAILED": "errors.more", "PARCEL_TOO_LARGE": "errors.inside"}

// Error is the message for a public error code. A code without one gets that
// of INTERNAL_ERROR's neighbour UNKNOWN: the code itself still says what it is.
func Error(lang, code string, args ...any) string {
	t, ok := errors[code]
	if !ok {
		if text := nounError(lang, code); text != "" {
			return text
		}
		t = errors["UNKNOWN"]
	}
	if code == "CHANNEL_NOT_CONFIGURED" && len(args) == 1 { // the figure is the reason
		return t[index(lang)] + " " + Word(lang, fmt.Sprint("errors.unsent.", args[0]))
	}
	if code == "DELIVERY_STATE_CONFLICT" && len(args) == 1 { // the figure is the doors that are open
		return Word(lang, "errors.open_doors", args...)
	}
	if code == "DELIVERY_STATE_CONFLICT" && len(args) == 2 { // what became of doors that were to open, and their names
		return Word(lang, fmt.Sprint("errors.doors.", args[0]), args[1])
	}
	if code == "UNSUPPORTED_MEDIA_TYPE" && len(args) == 1 { // the figure is the type that is taken
		return Word(lang, "errors.media", args...)
	}
	if code == "PARCEL_TOO_LARGE" && len(args) > 0 && args[0] == "compartment" { // one that was named, with its measures where they are known
		text := Word(lang, "errors.compartment")
		if len(args) > 1 {
			text += " " + Word(lang, "errors.compartment.inside", args[1:]...)
		}
		return text
	}
	if sentence := moreOf[code]; sentence != "" {
		if text := t[index(lang)]; len(args) < 2 {
			return text
		} else {
			return text + " " + Word(lang, sentence, args...)
		}
	}
	return format(t[index(lang)], args)
}

// HasError reports whether a public error code has a message.
func HasError(code string) bool { _, ok := errors[code]; return ok || nounError("", code) != "" }

// nounError is the message of NOUN_NOT_FOUND and NOUN_EXISTS; "" for other codes.
func nounError(lang, code string) string {
	for what, t := range nounErrors {
		if name, ok := strings.CutSuffix(code, "_"+what); ok {
			if noun, ok := nouns["noun."+strings.ToLower(name)+".one"]; ok {
				return format(t[index(lang)], []any{noun[index(lang)]})
			}
		}
	}
	return ""
}

// Field is a message about one input field in another language. The English
// sentence is its key, with the member's name and what is allowed in their places;
// one that is not known stays English.
func Field(lang, english string) string { return FieldOf(lang, english, "") }

// Fields are messages about the fields of an input, by path, in another language; nil for none.
func Fields(lang string, english map[string][]string) map[string][]string {
	if len(english) == 0 {
		return nil
	}
	out := make(map[string][]string, len(english))
	for path, messages := range english {
		for _, m := range messages {
			out[path] = append(out[path], Field(lang, m))
		}
	}
	return out
}

// FieldOf is Field with the words for the member in the place of its path; "" keeps the
// path.
func FieldOf(lang, english, member string) string {
	if t, ok := fields[english]; ok {
		return t[index(lang)]
	}
	if index(lang) == 0 && member == "" {
		return english
	}
	if text, ok := bound(lang, english, member); ok {
		return text
	}
	return english
}

// Resolution says what is proposed for an exception of a type at a place, and what follows at
// the cabinet.
func Resolution(lang, place, typ, action string) string {
	return fmt.Sprintf("%s: %s → %s. %s", place, Value(lang, "exception", typ), Value(lang, "value", action), Word(lang, "happens."+action))
}

// Status is the label of a tracking status. A code that is not registered is
// shown as words.
func Status(lang string, code otep.Code) string {
	if t, ok := statuses[code]; ok {
		return t[index(lang)]
	}
	s := strings.ReplaceAll(strings.TrimPrefix(string(code), "x-"), "_", " ")
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Description is what a status says as an entry of a history: the public label
// of the tracking event dictionary.
func Description(lang string, code otep.Code) string {
	if t, ok := descriptions[code]; ok {
		return t[index(lang)]
	}
	return Status(lang, code)
}

// Headline is a tracking status as pages say it: in plain words, else its label.
func Headline(lang string, code otep.Code) string {
	if t, ok := headlines[code]; ok {
		return t[index(lang)]
	}
	return Status(lang, code)
}

// Next tells the recipient what happens after a status, "" when nothing does.
func Next(lang string, code otep.Code) string { return next[code][index(lang)] }

// Word is a word or sentence of a page. An unknown key is shown as it is.
func Word(lang, key string, args ...any) string {
	t, ok := words[key]
	if !ok {
		return key
	}
	return format(t[index(lang)], args)
}

// Value is an enum value in words: kind and value make the key. A value
// without words is shown as it is.
func Value(lang, kind, value string) string {
	if t, ok := words[kind+"."+value]; ok {
		return t[index(lang)]
	}
	return strings.ReplaceAll(value, "_", " ")
}

func format(s string, args []any) string {
	if len(args) == 0 {
		return s
	}
	return fmt.Sprintf(s, args...)
}
