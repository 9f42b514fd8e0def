package order

import (
	"context"
	"slices"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// OperationsInput asks what was done to an order.
type OperationsInput struct {
	Key
	From  string `json:"from" format:"moment" graphql:"DateTime"`
	To    string `json:"to" format:"moment" graphql:"DateTime" doc:"Not included"`
	Types []int  `json:"operation_types"`
	check.Keyset
}

// OperationsOutput is a page of what was done, oldest first.
type OperationsOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	OrderID cloud.OrderID   `json:"order_id"`
	Number  string          `json:"tracking_number"`
	Events  []OperationBody `json:"events" graphql:"!"`
}

// OperationBody is one thing that was done (interface 6.2). Where it was done is
// not kept.
type OperationBody struct {
	ID        int64                        `json:"id" graphql:"Long!"`
	OrderID   cloud.OrderID                `json:"order_id"`
	PackageID *cloud.PackageID             `json:"package_id"`
	Type      int                          `json:"operation_type"`
	Name      string                       `json:"operation_name"`
	Channel   string                       `json:"channel"`
	Before    *cloud.OrderStatus           `json:"before_status"` // null when the order was made
	After     cloud.OrderStatus            `json:"after_status"`
	Changes   map[string]cloud.FieldChange `json:"changes"`
	Note      *string                      `json:"note"`
	Operator  OperatorBody                 `json:"operator" graphql:"JSON"`
	IP        *string                      `json:"ip"`
	Latitude  *float64                     `json:"latitude"`
	Longitude *float64                     `json:"longitude"`
	CreatedAt *string                      `json:"created_at" graphql:"DateTime!"`
}

// OperatorBody is who did it, as far as the caller may know.
type OperatorBody struct {
	Type string           `json:"type"`
	ID   *cloud.AccountID `json:"id"`
	Name *string          `json:"name"`
}

// Operations shows what was done to an order. Customers see what they did
// themselves, and of everything else the changes of status without who made
// them. Errors: ORDER_NOT_FOUND, AMBIGUOUS_ORDER_REF, VALIDATION_FAILED.
func (s *Service) Operations(ctx context.Context, c cloud.Caller, in OperationsInput) (OperationsOutput, error) {
	if err := in.Key.Check(); err != nil {
		return OperationsOutput{}, err
	}
	found, err := s.Find(ctx, c, in.Key)
	if err != nil {
		return OperationsOutput{}, err
	}
	o := found.Order
	var zone *time.Location
	err = s.store.Look(ctx, func(v cloud.View) (err error) {
		zone, err = s.shower(v, c).zone(o.BusinessID)
		return err
	})
	if err != nil {
		return OperationsOutput{}, err
	}
	page, err := in.Part(in, "id")
	if err != nil {
		return OperationsOutput{}, err
	}
	from, to := check.Moment(in.From, zone), check.Moment(in.To, zone)
	all, err := s.store.ListOrderOperations(ctx, o.BusinessID, o.OrderID)
	if err != nil {
		return OperationsOutput{}, err
	}
	all = slices.DeleteFunc(all, func(x cloud.OrderOperation) bool {
		return len(in.Types) > 0 && !slices.Contains(in.Types, x.Type) || x.At.Before(from) || !to.IsZero() && !x.At.Before(to) || hidden(c, x)
	})
	shown, listed, err := cloud.PartOf(all, page, func(x cloud.OrderOperation) int64 { return x.ID })
	if err != nil {
		return OperationsOutput{}, err
	}
	out := OperationsOutput{Result: true, PageOutput: in.Output(in, listed), OrderID: o.OrderID, Number: o.Number, Events: []OperationBody{}}
	for _, x := range shown {
		out.Events = append(out.Events, operationBody(c, x, zone))
	}
	return out, nil
}

// isOwnOperation reports whether a customer did something itself.
func isOwnOperation(c cloud.Caller, x cloud.OrderOperation) bool {
	return x.Operator.ID == c.Account.ID && (x.Type/1000 == 5 || x.Type/1000 == 6)
}

// hidden is what a caller may not know of at all.
func hidden(c cloud.Caller, x cloud.OrderOperation) bool {
	return c.Account.Type == cloud.Customer && x.Before == x.After && !isOwnOperation(c, x)
}

func operationBody(c cloud.Caller, x cloud.OrderOperation, zone *time.Location) OperationBody {
	b := OperationBody{ID: x.ID, OrderID: x.OrderID, PackageID: cloud.OrNull(x.PackageID), Type: x.Type, Name: operations[x.Type], Channel: channels[x.Type/1000],
		Before: cloud.OrNull(x.Before), After: x.After, Changes: map[string]cloud.FieldChange{}, Operator: OperatorBody{Type: x.Operator.Type},
		CreatedAt: cloud.Stamp(x.At, zone)}
	if c.Account.Type == cloud.Customer && !isOwnOperation(c, x) {
		return b
	}
	b.Note, b.Operator.ID, b.Operator.Name = cloud.OrNull(x.Note), cloud.OrNull(x.Operator.ID), cloud.OrNull(x.Operator.Name)
	if x.Changes != nil {
		b.Changes = x.Changes
	}
	return b
}

// GraphQLName is the name of the type in GraphQL.
func (OperationBody) GraphQLName() string { return "OperationEvent" }
