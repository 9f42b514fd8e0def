package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/route"
	"github.com/postern-io/postern/cloud/search"
	"github.com/postern-io/postern/cloud/webhook"
)

// finders find records by the functions of features.
type finders struct{ Config }

// searches is the search over all nouns that a text finds. table is the catalogue of
// the operations once it is made.
func searches(c Config, table func() *catalog.Catalog) []catalog.Operation {
	may := func(ctx context.Context, operation string, caller cloud.Caller) error {
		return c.Pipeline.May(ctx, table().Find(operation), caller)
	}
	f := finders{c}
	finders := []search.Finder{
		search.Finder{Noun: "cabinet", Operation: "smart_lockers.devices.list", Find: f.cabinets},
		search.Finder{Noun: "delivery", Operation: "smart_lockers.deliveries.list", Find: f.deliveries},
		search.Finder{Noun: "order", Operation: "orders.search", Find: f.orders},
		search.Finder{Noun: "driver", Operation: "drivers.list", Find: f.drivers},
		search.Finder{Noun: "webhook_log", Operation: "webhook_logs.find", Find: f.webhookLog, Own: true},
		search.Finder{Noun: "user", Operation: "users.list", Find: f.accounts(cloud.ClientAdmin, cloud.ClientEmployee, cloud.Broker)},
		search.Finder{Noun: "provider", Operation: "providers.list", Find: f.providers},
		search.Finder{Noun: "customer", Operation: "customers.list", Find: f.accounts(cloud.Customer)},
	}
	if c.Routes == nil { // drivers cannot be called either
		finders = slices.DeleteFunc(finders, func(x search.Finder) bool { return x.Noun == "driver" })
	}
	s := search.New(may, finders...)
	return []catalog.Operation{catalog.Define(catalog.Operation{
		Name:        "search.find",
		Summary:     "Search all records that the caller may read",
		Description: "Orders by number, reference, telephone number or name, locker deliveries by number, reference, package number, or name or telephone number of the recipient, cabinets by name, code or address, doors by name, drivers, users, contractors and customers by name or email, providers by name or code, and webhook deliveries by id. Kinds that the caller may not list are left out.",
		Tag:         "Client",
		Method:      http.MethodGet,
		Path:        "/api/v1/search",
		Types:       withOrders,
		Tool:        catalog.Whole{Name: "search_records", Category: "deliveries"},
		GraphQL:     &catalog.GraphQL{Field: "search", Type: "SearchResults"},
		Example:     `{"query":"SO-10042"}`,
	}, s.Find, nil)}
}

func (c finders) cabinets(ctx context.Context, caller cloud.Caller, text string, limit int) (out []search.Hit, err error) {
	if len(text) > 80 {
		return nil, nil
	}
	in := locker.DevicesInput{Keyword: text}
	in.PerPage = &limit
	found, err := c.Lockers.ListDevices(ctx, caller, in)
	for _, d := range found.Devices {
		out = append(out, search.Hit{ID: strconv.FormatInt(int64(d.DeviceID), 10), Title: cmp.Or(d.DeviceName, d.DeviceCode), Detail: d.Address, State: d.Status, Exact: search.Same(text, d.DeviceName, d.DeviceCode)})
	}
	if err != nil {
		return nil, err
	}
	doors, err := c.doors(ctx, caller, text, limit)
	return append(doors, out...), err
}

// doors finds doors by their names. The cabinets of all are read by who may list cabinets.
func (c finders) doors(ctx context.Context, caller cloud.Caller, text string, limit int) (out []search.Hit, err error) {
	cabinet, names := search.Door(text)
	if names == nil {
		return nil, nil
	}
	err = c.Store.Look(ctx, func(v cloud.View) error {
		found, err := v.SearchDoors(caller.Account.BusinessID, cabinet, names, limit)
		for _, d := range found {
			out = append(out, search.Hit{ID: strconv.FormatInt(int64(d.DeviceID), 10), Title: cmp.Or(d.Name, d.Code), Detail: d.Address, Exact: true, Door: d.GridCode, DoorName: d.Door})
		}
		return err
	})
	return out, err
}

func (c finders) deliveries(ctx context.Context, caller cloud.Caller, text string, limit int) (out []search.Hit, err error) {
	err = c.Store.Look(ctx, func(v cloud.View) error {
		found, err := v.SearchDeliveries(caller.Account.BusinessID, text, limit)
		for _, d := range found {
			names := []string{d.Number, d.Reference}
			for _, p := range d.Packages {
				names = append(names, p.TrackingNumber)
			}
			out = append(out, search.Hit{ID: strconv.FormatInt(int64(d.ID), 10), Title: d.Number, Detail: d.Recipient.Name, State: string(d.Status), Exact: search.Same(text, names...)})
		}
		return err
	})
	return out, err
}

func (c finders) orders(ctx context.Context, caller cloud.Caller, text string, limit int) (out []search.Hit, err error) {
	found, err := order.FindByText(ctx, c.Orders, caller, text, limit)
	for _, m := range found {
		h := search.Hit{ID: strconv.FormatInt(int64(m.OrderID), 10), Title: m.Number, State: strconv.Itoa(int(m.StatusID)), Exact: m.Score == 1 && m.Field != "recipient_name" && m.Field != "phone"}
		if m.RecipientName != nil {
			h.Detail = *m.RecipientName
		}
		out = append(out, h)
	}
	return out, err
}

func (c finders) drivers(ctx context.Context, caller cloud.Caller, text string, limit int) (out []search.Hit, err error) {
	if len(text) > 100 {
		return nil, nil
	}
	in := route.DriversInput{Keyword: text}
	in.PerPage = &limit
	found, err := c.Routes.Drivers(ctx, caller, in)
	for _, d := range found.Drivers {
		out = append(out, search.Hit{ID: strconv.FormatInt(int64(d.DriverID), 10), Title: d.Name, Detail: d.Email, State: string(d.Status), Exact: search.Same(text, d.Email)})
	}
	return out, err
}

func (c finders) webhookLog(ctx context.Context, caller cloud.Caller, text string, _ int) ([]search.Hit, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id <= 0 {
		return nil, nil
	}
	found, err := c.Receivers.FindLog(ctx, caller, webhook.EntryInput{ID: id})
	var known *cloud.Error
	if errors.As(err, &known) && known.Kind == cloud.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []search.Hit{{ID: text, Title: found.Log.Event, Detail: found.Log.ReferenceID, State: string(found.Log.Status), Exact: true}}, nil
}

// maxProviders are the providers of a business, by name, among which a text is looked for.
const maxProviders = 500

// providers finds providers by their name, a word of it, or their code.
func (c finders) providers(ctx context.Context, caller cloud.Caller, text string, limit int) (out []search.Hit, err error) {
	err = c.Store.Look(ctx, func(v cloud.View) error {
		list, _, err := v.Providers(caller.Account.BusinessID, cloud.Page{Sort: "name", Limit: maxProviders})
		for _, p := range list {
			if len(out) == limit {
				break
			}
			low := strings.ToLower(text)
			if strings.Contains(" "+strings.ToLower(p.Name), " "+low) || strings.HasPrefix(strings.ToLower(p.Code), low) {
				out = append(out, search.Hit{ID: strconv.FormatInt(int64(p.ID), 10), Title: cmp.Or(p.Name, p.Code), Detail: p.Code, Exact: search.Same(text, p.Name, p.Code)})
			}
		}
		return err
	})
	return out, err
}

// accounts finds accounts of some types.
func (c finders) accounts(types ...cloud.AccountType) func(context.Context, cloud.Caller, string, int) ([]search.Hit, error) {
	return func(ctx context.Context, caller cloud.Caller, text string, limit int) (out []search.Hit, err error) {
		err = c.Store.Look(ctx, func(v cloud.View) error {
			for _, t := range types {
				found, err := v.SearchAccounts(caller.Account.BusinessID, t, text, limit-len(out))
				if err != nil {
					return err
				}
				for _, a := range found {
					out = append(out, search.Hit{ID: strconv.FormatInt(int64(a.ID), 10), Title: cmp.Or(a.Name, a.Email), Detail: a.Email, Exact: search.Same(text, a.Email)})
				}
			}
			return nil
		})
		return out, err
	}
}
