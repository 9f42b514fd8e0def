package chat

import (
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
)

// autoReply answers a customer or recipient for a business that does not answer
// now: once in each time in which it does not.
func (x *participant) autoReply(m cloud.ChatMessage) error {
	chat := x.b.Settings.Chat
	if chat.AutoReply == "" || x.staff() {
		return nil
	}
	since, open := answering(chat.Hours, x.now.In(x.b.Location()))
	if open || since.Equal(x.talk.AutoReplied) {
		return nil
	}
	x.talk.AutoReplied = since.UTC()
	return x.addMessage(&cloud.ChatMessage{Sender: cloud.ChatParty{Role: cloud.ChatSystem, Account: cloud.SystemParty, Name: x.b.Name}, Kind: kindSystem, Text: chat.AutoReply})
}

// answering reports whether a business answers at now, in its own time zone, and
// if not, since when it does not.
func answering(hours []cloud.ChatHours, now time.Time) (since time.Time, open bool) {
	if len(hours) == 0 {
		return since, true
	}
	for _, h := range hours {
		for back := range 9 { // a day's hours may end on the next one
			day := now.AddDate(0, 0, -back)
			if !slices.Contains(h.Days, (int(day.Weekday())+6)%7+1) {
				continue
			}
			from, to := clockOn(day, h.Start), clockOn(day, h.End)
			if h.End <= h.Start {
				to = clockOn(day.AddDate(0, 0, 1), h.End)
			}
			if !now.Before(from) && now.Before(to) {
				return time.Time{}, true
			}
			if !to.After(now) && to.After(since) {
				since = to
			}
		}
	}
	return since, false
}

// clockOn is a time of a day, HH:MM; 24:00 is the end of it.
func clockOn(day time.Time, clock string) time.Time {
	h, m := int(clock[0]-'0')*10+int(clock[1]-'0'), int(clock[3]-'0')*10+int(clock[4]-'0')
	return time.Date(day.Year(), day.Month(), day.Day(), h, m, 0, 0, day.Location())
}
