package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"syscall"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/server"
	"github.com/postern-io/postern/cmd/internal/truth"
	"github.com/postern-io/postern/edge/buffer"
	simboard "github.com/postern-io/postern/firmware-sim/board"
	"github.com/postern-io/postern/protocol/wire"
)

// tally is what is counted at the end of a day.
type tally struct {
	Recorded         int `json:"recorded"`          // by the agents
	Stored           int `json:"stored"`            // by the cloud, distinct by device, boot and monotonic time
	Gaps             int `json:"gaps"`              // named by gap records
	Settled          int `json:"settled"`           // deposits
	SettledTwice     int `json:"settled_twice"`     // openings with more than one end
	SettledOpen      int `json:"settled_open"`      // settled while the door stood open
	OpenedWrong      int `json:"opened_wrong"`      // locks fired for no opening
	WebhooksSent     int `json:"webhooks_sent"`     // the cloud says
	WebhooksVerified int `json:"webhooks_verified"` // the receiver says
	WebhooksForged   int `json:"webhooks_forged"`
	ShopSent         int `json:"shop_sent"`     // distinct orders, the cloud says
	ShopVerified     int `json:"shop_verified"` // the shop says
	ShopForged       int `json:"shop_forged"`
	ShopGivenUp      int `json:"shop_given_up"` // as the shop asked
	DeadLetters      int `json:"dead_letters"`  // of the partner's tests
	ChatSaid         int `json:"chat_said"`     // messages, by the driver and recipient
	ChatStored       int `json:"chat_stored"`   // the cloud says
	Lost             int `json:"lost"`
	Crashes          int `json:"crashes"` // processes of the cloud that ended by themselves
	// Verdict is the oracle's, over coils, parcels and everything said of them.
	Verdict truth.Verdict `json:"verdict"`

	guests bool // they may write messages, too
}

// consistent reports whether all sides agree on what happened, however little that
// was.
func (t tally) consistent() bool {
	return t.Lost == 0 && t.Crashes == 0 && t.Verdict.OK() && t.Verdict.Authorised == t.Verdict.Coils && t.Recorded == t.Stored+t.Gaps && t.SettledTwice == 0 && t.SettledOpen == 0 && t.OpenedWrong == 0 &&
		t.WebhooksSent == t.WebhooksVerified && t.WebhooksForged == 0 && t.ShopSent == t.ShopVerified && t.ShopForged == 0 &&
		(t.ChatSaid == t.ChatStored || t.guests && t.ChatStored > t.ChatSaid)
}

// agrees reports whether they do about a whole day, in which everything happened.
func (t tally) agrees() bool {
	return t.consistent() && t.Verdict.Coils > 0 && t.Settled > 0 && t.WebhooksSent > 0 && t.ShopSent > 0 && t.ChatSaid > 0
}

func (t tally) print(out io.Writer) {
	fmt.Fprintf(out, `
  records      %d recorded by agents = %d stored + %d named by gaps; %d lost
  deposits     %d settled, %d twice, %d with the door open
  locks        %d fired for no opening
  webhooks     %d sent, %d received and verified, %d forged
  shop         %d sent, %d received and verified by the Standard Webhooks library, %d forged; %d given up, and %d dead letters, as /console/webhooks shows
  messages     %d said by driver and recipient, %d stored
  the cloud    %d ended by itself
  the boards   %s
  verdict      %s
`, t.Recorded, t.Stored, t.Gaps, t.Lost, t.Settled, t.SettledTwice, t.SettledOpen, t.OpenedWrong, t.WebhooksSent, t.WebhooksVerified, t.WebhooksForged,
		t.ShopSent, t.ShopVerified, t.ShopForged, t.ShopGivenUp, t.DeadLetters, t.ChatSaid, t.ChatStored, t.Crashes, t.Verdict, map[bool]string{true: "OK, all sides agree", false: "NOT OK, the sides do not agree"}[t.consistent()])
}

// compare stops everything in order and counts on all sides.
func (s reckoning) compare(ctx context.Context) (tally, error) {
	t := tally{guests: s.guest != nil}
	var err error
	if t.ChatSaid, t.ChatStored, err = s.hush(ctx); err != nil {
		return t, err
	}
	for _, c := range s.cabinets {
		c.proc.end(syscall.SIGTERM)
	}
	time.Sleep(time.Second) // the last receipts and webhooks
	if err := s.awaits(ctx, "all webhooks delivered", 90*time.Second, func() bool {
		sent, waiting, err := s.webhooks(ctx)
		return err == nil && waiting == 0 && sent == s.receiver.verified()
	}); err != nil {
		s.logStory("day", "%v", err)
	}
	s.cloud.end()
	t.Crashes = int(s.cloud.failed.Load())
	for _, c := range s.cabinets {
		n, err := c.recorded()
		if err != nil {
			return t, err
		}
		t.Recorded += n
	}
	cl, err := s.openCloud(ctx)
	if err != nil {
		return t, err
	}
	defer func() { _ = errors.Join(cl.Broker.Close(), cl.Store.Close()) }() // only read
	a, err := cl.Audit(ctx)
	if err != nil {
		return t, err
	}
	t.Stored, t.Gaps, t.Settled, t.SettledTwice = a.Stored, a.Gaps, a.Settled, a.SettledTwice
	t.Lost = t.Recorded - t.Stored - t.Gaps
	for _, c := range s.cabinets {
		t.OpenedWrong += c.wrong(a)
		t.SettledOpen += c.settledOpen(a)
	}
	rows, err := s.outbox(ctx, cl)
	if err != nil {
		return t, err
	}
	for _, r := range rows {
		switch {
		case r.Delivery.State == cloud.OutboxDead:
			t.DeadLetters++
			continue
		case r.Event.Test:
			continue
		case r.Delivery.State == cloud.OutboxSuccess:
			t.WebhooksSent++
		}
		if !s.receiver.has(r.Delivery.WebhookID) {
			t.Lost++ // a fact that reached no receiver
		}
	}
	if t.Verdict, err = s.checkDay(ctx, cl, t.Recorded); err != nil {
		return t, err
	}
	t.WebhooksVerified, t.WebhooksForged = s.receiver.verified(), s.receiver.forged()
	t.ShopVerified, t.ShopForged = s.shop.verified(), s.shop.forged()
	return t, s.shopLog(ctx, cl, &t)
}

// shopLog counts what the cloud says of the shop: orders that arrived, by
// whatever delivery, and those that did not.
func (s reckoning) shopLog(ctx context.Context, cl *server.Server, t *tally) error {
	sent, lost := map[string]bool{}, map[string]bool{}
	f := cloud.BusinessLog{BusinessID: s.box.ProviderCaller.Provider.BusinessID, Event: "order.created", Limit: 200}
	for {
		rows, err := cl.Store.ListBusinessOutbox(ctx, f)
		if err != nil {
			return fmt.Errorf("read the business's log: %w", err)
		}
		for _, r := range rows {
			id := r.Delivery.WebhookID
			switch {
			case r.Event.Test:
			case r.Delivery.State == cloud.OutboxSuccess:
				sent[id] = true
			default:
				lost[id] = true
			}
			f.Before = cloud.OutboxMark{At: r.Delivery.CreatedAt, ID: r.Delivery.ID}
		}
		if len(rows) < f.Limit {
			break
		}
	}
	t.ShopSent = len(sent)
	for id := range lost {
		if !sent[id] {
			t.ShopGivenUp++
		}
	}
	return nil
}

// recorded counts what a cabinet's store ever held. The demo damages no store,
// so there is one epoch and its ends are the counts.
func (c *cabinet) recorded() (int, error) {
	st, err := buffer.Open(buffer.Config{Path: filepath.Join(c.s.dir, c.code, "edge.db"), Stamp: func() wire.Record { return wire.Record{Mono: 1} }})
	if err != nil {
		return 0, fmt.Errorf("open store of %s: %w", c.code, err)
	}
	defer st.Close()
	if st.Opened().Prev != nil {
		return 0, fmt.Errorf("%s: the store began a new epoch", c.code)
	}
	ends := st.Ends()
	return int(ends[0].Last + ends[1].Last), nil
}

// wrong counts locks that fired although no opening of their door was running.
func (c *cabinet) wrong(a server.Audit) int {
	n := 0
	for _, f := range c.sim.Truth() {
		if f.Kind != simboard.CoilFired {
			continue
		}
		ok := false
		for _, o := range a.Openings {
			ok = ok || int64(o.Device) == c.id && o.Holds(f.Door) && !f.At.Before(o.Started.Add(-time.Second)) && (o.Ended.IsZero() || !f.At.After(o.Ended.Add(time.Second)))
		}
		if !ok {
			n++
		}
	}
	return n
}

func (c *cabinet) settledOpen(a server.Audit) int {
	n := 0
	for _, o := range a.Openings {
		if int64(o.Device) != c.id || o.End != wire.KindOpeningSettled {
			continue
		}
		for _, d := range o.Doors {
			if c.sim.OpenAt(d, o.Ended) {
				n++
			}
		}
	}
	return n
}

// outbox reads the whole delivery log.
func (s reckoning) outbox(ctx context.Context, cl *server.Server) (all []cloud.OutboxRow, err error) {
	f := cloud.OutboxFilter{ProviderID: s.box.ProviderCaller.Provider.ID, BusinessID: s.box.ProviderCaller.Provider.BusinessID, Page: cloud.Page{Limit: 200}}
	for {
		listed, rows, err := cl.Store.ListOutbox(ctx, f)
		if err != nil {
			return nil, fmt.Errorf("read delivery log: %w", err)
		}
		all = append(all, rows...)
		if f.After = listed.Next; f.After == nil {
			return all, nil
		}
	}
}

// webhooks asks the running cloud's delivery log.
func (s reckoning) webhooks(ctx context.Context) (sent, waiting int, err error) {
	url := s.api.base + "/api/v1/third-party-delivery/webhook-deliveries?per_page=200"
	for next := ""; ; {
		var out struct {
			Deliveries []struct {
				Status string `json:"status"`
				Test   bool   `json:"is_test"`
			} `json:"deliveries"`
			NextBefore *int64 `json:"next_before"`
		}
		if err = s.api.call(ctx, "GET", url+next, nil, &out); err != nil {
			return 0, 0, err
		}
		for _, d := range out.Deliveries {
			switch {
			case d.Test:
			case d.Status == "success":
				sent++
			case d.Status == "pending", d.Status == "delivering", d.Status == "retrying":
				waiting++
			}
		}
		if out.NextBefore == nil {
			return sent, waiting, nil
		}
		next = fmt.Sprintf("&before=%d", *out.NextBefore)
	}
}
