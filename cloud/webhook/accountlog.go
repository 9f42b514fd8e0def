package webhook

import (
	"context"
	"fmt"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// AccountLogInput asks for a page of the account channel's log, newest first.
type AccountLogInput struct {
	Event         string          `query:"event"`
	Channel       string          `query:"channel" doc:"account: other channels have logs of their own"`
	ReferenceType string          `query:"reference_type"`
	ReferenceID   string          `query:"reference_id"`
	Status        string          `query:"status" enum:"pending,delivering,success,retrying,failed,dead,paused"`
	CustomerID    cloud.AccountID `query:"customer_id" doc:"Customer whose own addresses got the deliveries"`
	From          string          `query:"from" format:"moment" graphql:"DateTime"`
	To            string          `query:"to" format:"moment" graphql:"DateTime"`
	check.Keyset
	URLID int64 `query:"url_id" doc:"An address of the settings, by its id"`
}

// AccountLogOutput is a page of the log.
type AccountLogOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Logs []Row `json:"logs" graphql:"[JSON!]"`
}

// GraphQLName is the name of the type in GraphQL.
func (AccountLogOutput) GraphQLName() string { return "WebhookLogList" }

// AccountEntryOutput shows one delivery of the account channel.
type AccountEntryOutput struct {
	Result bool  `json:"result"`
	Log    Entry `json:"log"`
}

// owner is whose deliveries of the account channel a caller sees: a client admin
// all of the business's, a customer those to its own addresses. Error:
// ACCOUNT_TYPE_NOT_ALLOWED.
func owner(c cloud.Caller) (cloud.OutboxOwner, error) {
	o := cloud.OutboxOwner{BusinessID: c.Account.BusinessID}
	switch c.Account.Type {
	case cloud.ClientAdmin:
	case cloud.Customer:
		o.CustomerID = c.Account.ID
	default:
		return o, cloud.E(cloud.Forbidden, "ACCOUNT_TYPE_NOT_ALLOWED")
	}
	return o, nil
}

// ListLogs shows a page of the account channel's log. Errors:
// ACCOUNT_TYPE_NOT_ALLOWED, VALIDATION_FAILED.
func (s deliveryLog) ListLogs(ctx context.Context, c cloud.Caller, in AccountLogInput) (out AccountLogOutput, err error) {
	o, err := owner(c)
	if err != nil {
		return out, err
	}
	l, err := s.zone(ctx, o.BusinessID)
	if err != nil {
		return out, err
	}
	page, err := in.Part(in, "")
	if err != nil {
		return out, err
	}
	f := cloud.AccountLog{BusinessID: o.BusinessID, CustomerID: in.CustomerID, Event: in.Event, ReferenceType: in.ReferenceType, ReferenceID: in.ReferenceID,
		State: cloud.OutboxState(in.Status), EndpointID: cloud.EndpointID(in.URLID), From: check.Moment(in.From, l), To: check.Moment(in.To, l), Page: page}
	if o.CustomerID != 0 {
		f.CustomerID = o.CustomerID
	}
	out = AccountLogOutput{Result: true, PageOutput: in.Output(in, cloud.Listed{}), Logs: []Row{}}
	if in.Channel != "" && in.Channel != cloud.ChannelAccount {
		return out, nil
	}
	listed, rows, err := s.store.ListAccountOutbox(ctx, f)
	if err != nil {
		return out, fmt.Errorf("list deliveries: %w", err)
	}
	out.PageOutput = in.Output(in, listed)
	for _, r := range rows {
		out.Logs = append(out.Logs, row(r, l))
	}
	return out, nil
}

// FindLog shows one delivery of the account channel with its attempts. Errors:
// ACCOUNT_TYPE_NOT_ALLOWED, WEBHOOK_DELIVERY_NOT_FOUND.
func (s deliveryLog) FindLog(ctx context.Context, c cloud.Caller, in EntryInput) (out AccountEntryOutput, err error) {
	o, err := owner(c)
	if err != nil {
		return out, err
	}
	out.Log, err = s.entry(ctx, o, in)
	out.Result = err == nil
	return out, err
}

// ReplayInput names one delivery, and an address that it goes to in place of its
// receiver's.
type ReplayInput struct {
	ID  int64  `path:"id" json:"-"`
	URL string `json:"url" doc:"Another address, for client administrators"`
}

// Replay sends a stored event of the account channel again: the same bytes and
// ids, a new row. Errors: ACCOUNT_TYPE_NOT_ALLOWED, WEBHOOK_DELIVERY_NOT_FOUND,
// BLOCKED_URL.
func (s deliveryLog) Replay(ctx context.Context, c cloud.Caller, in ReplayInput) (out RedeliverOutput, err error) {
	o, err := owner(c)
	if err == nil && in.URL != "" {
		if c.Account.Type != cloud.ClientAdmin {
			return out, cloud.E(cloud.Forbidden, "ACCOUNT_TYPE_NOT_ALLOWED")
		}
		err = s.allowed(ctx, "url", in.URL)
	}
	if err != nil {
		return out, err
	}
	return s.again(ctx, c, o, in.ID, in.URL)
}
