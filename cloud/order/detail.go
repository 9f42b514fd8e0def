package order

import (
	"context"
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/locale"
	"github.com/postern-io/postern/protocol/otep"
)

// DetailInput asks for one order, and for what is kept beside it.
type DetailInput struct {
	Key
	Include []string `item_enum:"packages,proof,price,tracking,operation_events,interception"`
}

// DetailOutput shows an order. The members beside it are there when they were
// asked for.
type DetailOutput struct {
	OrderOutput
	Tracking      *otep.Timeline     `json:"tracking,omitempty"`
	Operations    []OperationBody    `json:"operation_events,omitzero"` // oldest first
	Interceptions []InterceptionBody `json:"interceptions,omitzero"`    // oldest first
}

// Blocks beside an order. The first three are in the order itself.
const (
	withPackages      = "packages"
	withProof         = "proof"
	withPrice         = "price"
	withTracking      = "tracking"
	withOperations    = "operation_events"
	withInterceptions = "interception"
)

// Detail shows one order with blocks beside it. Drivers do not see who did
// what. Errors: ORDER_NOT_FOUND, AMBIGUOUS_ORDER_REF, VALIDATION_FAILED of an
// unknown block, ACCOUNT_TYPE_NOT_ALLOWED.
func (s *Service) Detail(ctx context.Context, c cloud.Caller, in DetailInput) (out DetailOutput, err error) {
	wants := func(name string) bool { return slices.Contains(in.Include, name) }
	if c.Account.Type == cloud.DriverAccount && (wants(withOperations) || wants(withInterceptions)) {
		return out, cloud.E(cloud.Forbidden, CodeType)
	}
	if out.OrderOutput, err = s.Find(ctx, c, in.Key); err != nil {
		return DetailOutput{}, err
	}
	id := out.Order.OrderID
	if wants(withTracking) {
		if out.Tracking, err = s.tracked(ctx, c, out.Order); err != nil {
			return DetailOutput{}, err
		}
	}
	if wants(withOperations) {
		done, err := s.Operations(ctx, c, OperationsInput{Key: Key{OrderID: id}, Keyset: check.Keyset{PerPage: new(200)}})
		if err != nil {
			return DetailOutput{}, err
		}
		out.Operations = done.Events
	}
	if wants(withInterceptions) {
		stops, err := s.Interceptions(ctx, c, OrderRef{OrderID: id})
		if err != nil {
			return DetailOutput{}, err
		}
		out.Interceptions = stops.Interceptions
	}
	return out, nil
}

// tracked is an order's timeline, oldest event first, with labels in the
// caller's language.
func (s *Service) tracked(ctx context.Context, c cloud.Caller, o OrderBody) (*otep.Timeline, error) {
	var t otep.Timeline
	err := s.store.Look(ctx, func(v cloud.View) error {
		d := s.begin(v, c, s.time(), cloud.Order{ID: o.OrderID, BusinessID: c.Account.BusinessID})
		for _, p := range o.Packages {
			d.Order.Packages = append(d.Order.Packages, cloud.OrderPackage{ID: p.PackageID})
		}
		l, err := d.Timeline()
		if err != nil {
			return err
		}
		t = l.fold(0)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range t.Events {
		t.Events[i].StatusLabel = locale.Status(c.Language, t.Events[i].StatusCode)
	}
	return &t, nil
}
