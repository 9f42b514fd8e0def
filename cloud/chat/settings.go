package chat

import (
	"context"
	"strconv"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// Settings are those of a business's chat.
type Settings struct {
	Recipient     bool         `json:"allow_recipient"`
	Customer      bool         `json:"allow_customer"`
	Driver        bool         `json:"allow_driver"`
	CloseHours    int          `json:"auto_close_hours"`
	QuickReplies  []QuickReply `json:"quick_replies"`
	Hours         []Hours      `json:"working_hours"`
	AutoReply     *string      `json:"auto_reply"`
	RetentionDays int          `json:"retention_days"`
}

// QuickReply is a text that is sent by its id.
type QuickReply struct {
	ID       string `json:"id" required:"true" pattern:"^[A-Za-z0-9._-]{1,64}$" example:"on-my-way"`
	Text     string `json:"text" required:"true" max:"2000"`
	Audience string `json:"audience" enum:"all,staff_driver" default:"all"`
}

// Hours are a time in which the business answers.
type Hours struct {
	Days  []int  `json:"days" required:"true" max:"7" item_min:"1" item_max:"7" doc:"1 Monday to 7 Sunday"`
	Start string `json:"start" required:"true" format:"time" doc:"In the business's time zone"`
	End   string `json:"end" required:"true" pattern:"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$" example:"18:30" doc:"Up to 24:00; before the start: on the next day"`
}

// SettingsOutput shows the settings.
type SettingsOutput struct {
	Result   bool     `json:"result"`
	Settings Settings `json:"settings"`
}

// SettingsInput changes settings. An absent member stays as it is.
type SettingsInput struct {
	Recipient     *bool         `json:"allow_recipient" doc:"Tracking answers hold a token for the chat, for every caller who has the tracking number"`
	Customer      *bool         `json:"allow_customer"`
	Driver        *bool         `json:"allow_driver"`
	CloseHours    *int          `json:"auto_close_hours" min:"1" max:"720" doc:"After an order has ended"`
	QuickReplies  *[]QuickReply `json:"quick_replies" max:"100"`
	Hours         *[]Hours      `json:"working_hours" max:"50" doc:"None: always"`
	AutoReply     *string       `json:"auto_reply" max:"2000" doc:"What customers and recipients are answered outside of working hours; empty: nothing"`
	RetentionDays *int          `json:"retention_days" min:"1" max:"3650" doc:"After a conversation has closed"`
}

func showSettings(s cloud.ChatSettings) Settings {
	out := Settings{Recipient: s.Recipient, Customer: !s.NoCustomer, Driver: !s.NoDriver, CloseHours: int(s.CloseAfter().Hours()), QuickReplies: []QuickReply{}, Hours: []Hours{},
		AutoReply: cloud.OrNull(s.AutoReply), RetentionDays: int(s.Retention().Hours()) / 24}
	for _, q := range s.QuickReplies {
		out.QuickReplies = append(out.QuickReplies, QuickReply(q))
	}
	for _, h := range s.Hours {
		out.Hours = append(out.Hours, Hours(h))
	}
	return out
}

// FindSettings shows the settings of the caller's business.
func (s settings) FindSettings(ctx context.Context, c cloud.Caller, _ check.None) (out SettingsOutput, err error) {
	err = s.store.Look(ctx, func(v cloud.View) error {
		b, err := v.Business(c.Account.BusinessID)
		out = SettingsOutput{Result: err == nil, Settings: showSettings(b.Settings.Chat)}
		return err
	})
	return out, err
}

// SaveSettings changes the settings of the caller's business. Error:
// VALIDATION_FAILED.
func (s settings) SaveSettings(ctx context.Context, c cloud.Caller, in SettingsInput) (out SettingsOutput, err error) {
	if err := in.check(); err != nil {
		return out, err
	}
	err = s.store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return nil, err
		}
		in.apply(&b.Settings.Chat)
		out = SettingsOutput{Result: true, Settings: showSettings(b.Settings.Chat)}
		return &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{b}}}, nil
	})
	return out, err
}

func (in SettingsInput) check() error {
	f := newFields()
	if in.QuickReplies != nil {
		seen := map[string]bool{}
		for i, q := range *in.QuickReplies {
			if seen[q.ID] {
				f.Say("quick_replies."+strconv.Itoa(i)+".id", check.MessageTwice)
			}
			seen[q.ID] = true
		}
	}
	return f.Err()
}

func (in SettingsInput) apply(s *cloud.ChatSettings) {
	set(&s.Recipient, in.Recipient)
	set(&s.CloseHours, in.CloseHours)
	set(&s.RetentionDays, in.RetentionDays)
	set(&s.AutoReply, in.AutoReply)
	if in.Customer != nil {
		s.NoCustomer = !*in.Customer
	}
	if in.Driver != nil {
		s.NoDriver = !*in.Driver
	}
	if in.QuickReplies != nil {
		s.QuickReplies = nil
		for _, q := range *in.QuickReplies {
			s.QuickReplies = append(s.QuickReplies, cloud.ChatQuickReply(q))
		}
	}
	if in.Hours != nil {
		s.Hours = nil
		for _, h := range *in.Hours {
			s.Hours = append(s.Hours, cloud.ChatHours(h))
		}
	}
}

// set sets what was given.
func set[T any](to *T, v *T) {
	if v != nil {
		*to = *v
	}
}
