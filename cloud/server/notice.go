package server

import (
	"context"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/webhook/sender"
)

// noticeOf is the notice of a commit of this node.
func noticeOf(ch *cloud.Changes) (n store.Notice) {
	for _, c := range ch.Commands {
		if c.State == cloud.CommandQueued {
			n.Devices = append(n.Devices, c.DeviceID)
		}
		if c.OpeningID != "" {
			n.Openings = append(n.Openings, c.OpeningID)
		}
	}
	for _, c := range ch.Codes {
		n.Devices = append(n.Devices, c.DeviceID)
	}
	for _, d := range ch.Devices {
		n.Devices = append(n.Devices, d.ID)
	}
	for _, x := range ch.Sessions {
		n.Devices = append(n.Devices, x.DeviceID)
	}
	for _, o := range ch.Openings {
		n.Openings = append(n.Openings, o.ID)
	}
	n.Jobs = len(ch.Jobs)+len(ch.RetryJobs) > 0
	n.Slots = sender.UnleasedSlots(ch)
	n.Touches = ch.Touches()
	return n
}

// noticed passes a notice of another node on to the sections that act on it.
func (s *Server) noticed(ctx context.Context, n store.Notice) {
	if n.Missed {
		go s.Devices.NoticeAll(ctx)
	}
	if n.Nodes {
		s.member.Look()
	}
	s.Devices.Notice(ctx, n.Devices)
	s.Lockers.Notice(n.Openings)
	if n.Jobs {
		s.orders.Wake()
		s.jobs.Wake()
	}
	if n.Slots != 0 {
		s.Webhooks.Notice(n.Slots)
	}
	s.pages.Notice(n.Touches)
	s.parcels.Notice(n.Touches)
}
