package order

import (
	"cmp"
	"context"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

// Find shows one order. Errors: ORDER_NOT_FOUND, AMBIGUOUS_ORDER_REF.
func (s *Service) Find(ctx context.Context, c cloud.Caller, k Key) (out OrderOutput, err error) {
	r, err := reachOf(c)
	if err != nil {
		return out, err
	}
	err = s.store.Look(ctx, func(v cloud.View) error {
		o, err := find(v, r, k)
		if err != nil {
			return err
		}
		out.Result = true
		out.Order, err = s.shower(v, c).order(o, nil)
		return err
	})
	return out, err
}

// ListInput asks for a page of orders. Fields that are not given do not filter.
type ListInput struct {
	StatusIDs     []cloud.OrderStatus `query:"status_ids" json:"status_ids"`
	Type          cloud.OrderType     `query:"type" json:"type"`
	ScheduledFrom string              `query:"scheduled_date_from" json:"scheduled_date_from" format:"date" graphql:"Date"`
	ScheduledTo   string              `query:"scheduled_date_to" json:"scheduled_date_to" format:"date" graphql:"Date" doc:"Included"`
	CreatedFrom   string              `query:"created_from" json:"created_from" format:"moment" graphql:"DateTime"`
	CreatedTo     string              `query:"created_to" json:"created_to" format:"moment" graphql:"DateTime" doc:"Not included"`
	CustomerID    cloud.AccountID     `query:"customer_id" json:"customer_id"`
	DriverID      cloud.AccountID     `query:"driver_id" json:"driver_id"`
	RouteID       int64               `query:"route_id" json:"route_id"`
	BrokerID      cloud.AccountID     `query:"broker_id" json:"broker_id"`
	WarehouseID   int64               `query:"warehouse_id" json:"warehouse_id"`
	Keyword       string              `query:"keyword" json:"keyword" min:"3" max:"100"`
	check.Keyset
	Sort string `query:"sort" json:"sort" enum:"-id,id,-created_at,created_at,-updated_at,updated_at,-scheduled_date,scheduled_date,-priority,priority,-order_status_id,order_status_id" doc:"-id when absent"`
}

// ListOutput is a page of orders. Total counts all pages, up to cloud.MaxTotal.
type ListOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Orders []OrderBody `json:"orders" graphql:"!"`
}

// query checks the input and makes the query of it.
func (in *ListInput) query(r reach, zone *time.Location) (cloud.OrderQuery, error) {
	f := newFields()
	q := cloud.OrderQuery{BusinessID: r.business, CustomerID: in.CustomerID, BrokerID: in.BrokerID, DriverID: in.DriverID, RouteID: in.RouteID,
		WarehouseID: in.WarehouseID, Statuses: in.StatusIDs, Type: in.Type, ScheduledFrom: in.ScheduledFrom, ScheduledTo: in.ScheduledTo,
		CreatedFrom: check.Moment(in.CreatedFrom, zone), CreatedTo: check.Moment(in.CreatedTo, zone), Keyword: fold(in.Keyword)}
	if r.customer != 0 {
		q.CustomerID = r.customer
	}
	if r.broker != 0 {
		q.BrokerID = r.broker
	}
	if r.driver != 0 {
		q.DriverID = r.driver
	}
	if n := utf8.RuneCountInString(q.Keyword); in.Keyword != "" && n < minQuery {
		f.Say("keyword", check.MessageShort, strconv.Itoa(minQuery), strconv.Itoa(n)) // without blanks
	}
	if err := f.Err(); err != nil {
		return q, err
	}
	var err error
	q.Page, err = in.Part(in, cmp.Or(in.Sort, "-id"))
	return q, err
}

// List shows a page of the orders that the caller may see. A page behind the
// last one is empty. Error: VALIDATION_FAILED.
func (s *Service) List(ctx context.Context, c cloud.Caller, in ListInput) (ListOutput, error) {
	r, err := reachOf(c)
	if err != nil {
		return ListOutput{}, err
	}
	var q cloud.OrderQuery
	err = s.store.Look(ctx, func(v cloud.View) error {
		zone, err := s.shower(v, c).zone(r.business)
		if err != nil {
			return err
		}
		q, err = in.query(r, zone)
		return err
	})
	if err != nil {
		return ListOutput{}, err
	}
	out := ListOutput{Result: true, PageOutput: in.Output(in, cloud.Listed{}), Orders: []OrderBody{}}
	foreign := r.customer != 0 && in.CustomerID != 0 && in.CustomerID != r.customer || r.broker != 0 && in.BrokerID != 0 && in.BrokerID != r.broker ||
		r.driver != 0 && in.DriverID != 0 && in.DriverID != r.driver
	if r.nothing || foreign {
		return out, nil
	}
	listed, found, err := s.store.ListOrders(ctx, q)
	if err != nil {
		return ListOutput{}, err
	}
	out.PageOutput = in.Output(in, listed)
	return out, s.store.Look(ctx, func(v cloud.View) error {
		show := s.shower(v, c)
		for _, o := range found {
			b, err := show.order(o, nil)
			if err != nil {
				return err
			}
			out.Orders = append(out.Orders, b)
		}
		return nil
	})
}
