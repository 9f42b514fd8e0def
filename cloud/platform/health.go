package platform

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// Health is how a business was when it was counted.
type Health struct {
	BusinessID cloud.BusinessID `json:"business_id"`
	Cabinets   int              `json:"cabinets"`
	Online     int              `json:"cabinets_online"`
	Endpoints  int              `json:"webhook_endpoints"`
	Failing    int              `json:"webhook_endpoints_failing" doc:"Degraded, paused or gone"`
	Backlog    int              `json:"webhook_backlog" doc:"Deliveries that wait, counted up to 10001"`
	CountedAt  *string          `json:"counted_at"`
}

// HealthOutput lists how businesses are.
type HealthOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Health []Health `json:"health"`
}

// ListHealth lists how businesses were a minute ago at most, newest first. It counts
// nothing.
func (s *Service) ListHealth(ctx context.Context, _ cloud.Caller, in PageInput) (out HealthOutput, err error) {
	page, err := in.Part(in, "-id")
	if err != nil {
		return out, err
	}
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		list, listed, err := v.BusinessHealths(page)
		out = HealthOutput{Result: err == nil, PageOutput: in.Output(in, listed), Health: []Health{}}
		for _, h := range list {
			out.Health = append(out.Health, Health{h.BusinessID, h.Cabinets, h.Online, h.Endpoints, h.Failing, h.Backlog, cloud.Stamp(h.CountedAt, time.UTC)})
		}
		return err
	})
	return out, err
}
