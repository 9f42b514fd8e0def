package order_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/cloud/check/checktest"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/store"
	"github.com/postern-io/postern/cloud/store/storetest"
	"github.com/postern-io/postern/cloud/timeline"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webhook"
	"github.com/postern-io/postern/protocol/otep"
)

// world is a business with its people, and another one.
type world struct {
	t      testing.TB
	db     *store.DB
	orders *order.Service
	hooks  *webhook.Service
	files  *shelf

	admin, staff, customer, other, broker, rival, driver, stranger cloud.Caller
}

func newWorld(t testing.TB, db *store.DB) *world {
	w := &world{t: t, db: db, hooks: webhook.New(db, open{})}
	files, err := object.Open(t.TempDir(), bytes.Repeat([]byte{1}, 32))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, files.Close()) })
	w.files = &shelf{Files: files}
	w.orders = order.New(order.Config{Store: db, SignFile: signed, Sealer: storetest.Box(t), Webhooks: w.hooks})
	ch := &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: []cloud.Business{{ID: 42, Code: "acme", Name: "Acme", Timezone: "America/Toronto"}, {ID: 43, Code: "rival", Name: "Rival", Timezone: "UTC"}}}}
	add := func(id cloud.AccountID, b cloud.BusinessID, kind cloud.AccountType) cloud.Caller {
		a := cloud.Account{ID: id, BusinessID: b, Type: kind, Email: fmt.Sprintf("%d@x.example", id), Name: fmt.Sprint(kind, " ", id), Enabled: true}
		if kind == cloud.ClientEmployee {
			a.Permissions = []string{"orders:write"}
		}
		ch.Accounts = append(ch.Accounts, a)
		return cloud.Caller{Account: a, Language: "en", BaseURL: "https://acme.example"}
	}
	w.admin, w.staff = add(1, 42, cloud.ClientAdmin), add(2, 42, cloud.ClientEmployee)
	w.customer, w.other = add(3, 42, cloud.Customer), add(4, 42, cloud.Customer)
	w.broker, w.driver, w.stranger = add(5, 42, cloud.Broker), add(6, 42, cloud.DriverAccount), add(7, 43, cloud.ClientAdmin)
	w.rival = add(8, 42, cloud.Broker)
	require.NoError(t, db.Decide(t.Context(), 0, func(cloud.View) (*cloud.Changes, error) { return ch, nil }))
	return w
}

// onBoth runs a test on each database.
func onBoth(t *testing.T, test func(t *testing.T, w *world)) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { t.Parallel(); test(t, newWorld(t, storetest.OpenSQLite(t))) })
	t.Run("PostgreSQL", func(t *testing.T) { t.Parallel(); test(t, newWorld(t, storetest.OpenSecondPostgres(t))) })
}

func address(name string) *cloud.Address {
	return &cloud.Address{Name: name, Phone: "+1 (416) 555-0123", Line1: "1 Secret Lane", City: "Toronto", Province: "ON", PostalCode: "M5V 2T6", Country: "ca"}
}

func input(kind cloud.OrderType) order.CreateInput {
	in := order.CreateInput{Type: kind, Packages: []order.PackageInput{{Weight: 2.4}, {Weight: 1, WeightUnit: "lb", Ref: "second"}}}
	if kind != cloud.PickupOrder {
		in.Recipient = address("Jane Smith")
	}
	if kind != cloud.DeliveryOrder {
		in.Sender = address("Bob Sender")
	}
	return in
}

func (w *world) create(c cloud.Caller, in order.CreateInput) order.OrderBody {
	w.t.Helper()
	out, err := w.orders.Create(w.t.Context(), c, in)
	require.NoError(w.t, err)
	return out.Order
}

func (w *world) ref(ref string) order.OrderBody {
	in := input(cloud.DeliveryOrder)
	in.Ref = ref
	return w.create(w.staff, in)
}

func (w *world) find(id cloud.OrderID) order.OrderBody {
	w.t.Helper()
	out, err := w.orders.Find(w.t.Context(), w.staff, order.Key{OrderID: id})
	require.NoError(w.t, err)
	return out.Order
}

func (w *world) move(id cloud.OrderID, to cloud.OrderStatus, by order.Trigger) {
	w.t.Helper()
	require.NoError(w.t, w.orders.Move(w.t.Context(), cloud.Caller{}, order.MoveInput{BusinessID: 42, OrderID: id, To: to, Trigger: by, Operation: 1005}))
}

// codes is the order's timeline.
func (w *world) codes(id cloud.OrderID) string {
	w.t.Helper()
	var out []string
	require.NoError(w.t, w.db.Look(w.t.Context(), func(v cloud.View) error {
		s, err := v.OrderShipment(42, id)
		require.NoError(w.t, err)
		rows, err := v.Timeline(s.ID)
		require.NoError(w.t, err)
		o, err := v.Order(42, id)
		require.NoError(w.t, err)
		packages := cloud.IDsOfPackages(o.Packages)
		t := otep.Fold(s.Profile, otep.Subject{TrackingNumber: s.Number}, timeline.OfOrder(rows, packages, time.Time{}))
		require.Empty(w.t, otep.BadMoves(t.Events))
		for _, p := range packages {
			of := otep.Fold(s.Profile, otep.Subject{TrackingNumber: s.Number}, timeline.OfPackage(rows, packages, p, time.Time{}))
			require.Empty(w.t, otep.BadMoves(of.Events), "package %d", p)
		}
		require.Equal(w.t, *t.Current, s.Current, "the cached fold")
		for _, e := range t.Events {
			out = append(out, string(e.StatusCode))
		}
		return nil
	}))
	return strings.Join(out, " ")
}

// did is what was done to an order: types with the statuses before and after.
func (w *world) did(id cloud.OrderID) (out []string) {
	w.t.Helper()
	ops, err := w.db.ListOrderOperations(w.t.Context(), 42, id)
	require.NoError(w.t, err)
	for _, x := range ops {
		out = append(out, fmt.Sprintf("%d:%d>%d", x.Type, x.Before, x.After))
	}
	return out
}

func code(err error) string {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return fmt.Sprint(err)
}

func failure[T any](_ T, err error) string { return code(err) }

func ids(list []order.OrderBody) (out []cloud.OrderID) {
	for _, o := range list {
		out = append(out, o.OrderID)
	}
	return out
}

func TestCreateAndFind(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		in := input(cloud.PointToPoint)
		cod := cloud.Money(1999)
		in.Ref, in.CustomerID, in.COD, in.Metadata = "PO-7781", w.customer.Account.ID, &cod, map[string]string{"cart": "c-88"}
		in.WindowStart, in.WindowEnd, in.Note, in.ExternalID = "13:00", "17:00", "ring twice", "shop-1"
		in.Packages[0].ExternalNumber = "UPS-9"
		out, err := w.orders.Create(t.Context(), w.staff, in)
		require.NoError(t, err)
		require.True(t, out.Result)
		require.Equal(t, cloud.RandomNumber, cloud.FormOf(out.Number))
		require.Equal(t, "https://acme.example/track/"+out.Number, out.TrackingURL)
		require.Len(t, out.Packages, 2)
		require.Equal(t, out.Number+"-2", out.Packages[1].Number)
		require.Equal(t, "ADDRESS_APPROXIMATE", out.Warnings[0].Code)
		o := out.Order
		require.Equal(t, cloud.OrderNew, o.StatusID)
		require.Equal(t, "information_submitted", string(*o.OTEPStatus))
		require.Equal(t, "customer 3", *o.CustomerName)
		require.Equal(t, "CA", o.Recipient.Country, "codes are upper case")
		require.InDelta(t, 2.854, o.TotalWeight, 0.0001)
		toronto, _ := time.LoadLocation("America/Toronto")
		require.Equal(t, time.Now().In(toronto).AddDate(0, 0, 1).Format(time.DateOnly), *o.ScheduledDate)
		require.Equal(t, "information_submitted", w.codes(o.OrderID))
		require.Equal(t, []string{"6001:0>1"}, w.did(o.OrderID))

		b, err := json.Marshal(out)
		require.NoError(t, err)
		require.Contains(t, string(b), `"cod_amount":19.99`)
		require.NotContains(t, string(b), "shipping_price", "there is no price")
		require.NotContains(t, string(b), "price_hidden")
		for _, null := range []string{`"route_id":null`, `"eta":null`, `"interception":null`, `"locker":null`, `"broker_assignment":null`, `"delivered_at":null`} {
			require.Contains(t, string(b), null)
		}

		for _, k := range []order.Key{{OrderID: o.OrderID}, {Ref: "PO-7781"}, {Number: strings.ToLower(o.Number)}} {
			got, err := w.orders.Find(t.Context(), w.staff, k)
			require.NoError(t, err)
			require.Equal(t, o, got.Order)
			mine, err := w.orders.Find(t.Context(), w.customer, k)
			require.NoError(t, err)
			require.Nil(t, mine.Order.Note, "a note is the business's own")
			for _, c := range []cloud.Caller{w.other, w.broker, w.driver, w.stranger} {
				require.Equal(t, "ORDER_NOT_FOUND", failure(w.orders.Find(t.Context(), c, k)))
			}
		}
		for _, k := range []order.Key{{}, {OrderID: -1}, {Ref: "nope"}, {Number: "SR\x00"}, {Ref: "\xff"}} {
			require.Equal(t, "ORDER_NOT_FOUND", failure(w.orders.Find(t.Context(), w.staff, k)))
		}
		require.Equal(t, "UNAUTHENTICATED", failure(w.orders.Find(t.Context(), cloud.Caller{}, order.Key{OrderID: 1})))
		audits, err := w.db.ListAudits(t.Context(), 42, 0, 10)
		require.NoError(t, err)
		require.Equal(t, "order_created", audits[0].Action)
		require.Equal(t, fmt.Sprintf("order:%d", o.OrderID), audits[0].Target)
	})
}

func TestReferencesAreUniquePerCustomer(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		in := input(cloud.DeliveryOrder)
		in.Ref = "PO-1"
		first := w.create(w.customer, in)
		_, err := w.orders.Create(t.Context(), w.customer, in)
		require.Equal(t, "DUPLICATE_ORDER_REF", code(err))
		var e *cloud.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, first.OrderID, e.Details["order_id"])
		second := w.create(w.other, in)
		third := w.create(w.stranger, in)
		_, err = w.orders.Find(t.Context(), w.staff, order.Key{Ref: "PO-1"})
		require.Equal(t, "AMBIGUOUS_ORDER_REF", code(err))
		require.ErrorAs(t, err, &e)
		require.Equal(t, []cloud.OrderID{first.OrderID, second.OrderID}, e.Details["order_ids"])
		got, err := w.orders.Find(t.Context(), w.customer, order.Key{Ref: "PO-1"})
		require.NoError(t, err)
		require.Equal(t, first.OrderID, got.Order.OrderID)
		require.NotEqual(t, second.OrderID, third.OrderID)

		// After the order is deleted its reference is free.
		_, err = w.orders.Delete(t.Context(), w.admin, order.OrderRef{OrderID: first.OrderID})
		require.NoError(t, err)
		w.create(w.customer, in)

		// Many at the same moment: one of them has it.
		in.Ref = "PO-race"
		errs := make(chan error, 8)
		for range cap(errs) {
			go func() {
				_, err := w.orders.Create(t.Context(), w.staff, in)
				errs <- err
			}()
		}
		made := 0
		for range cap(errs) {
			if err := <-errs; err == nil {
				made++
			} else {
				require.Equal(t, "DUPLICATE_ORDER_REF", code(err))
			}
		}
		require.Equal(t, 1, made)
	})
}

func TestWhatCannotBeAnOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.OpenSQLite(t))
	f := func(field string, spoil func(in *order.CreateInput)) {
		t.Helper()
		in := input(cloud.PointToPoint)
		spoil(&in)
		_, err := w.orders.Create(t.Context(), w.staff, in)
		var e *cloud.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "VALIDATION_FAILED", e.Code)
		require.Contains(t, e.Fields, field)
		require.Len(t, e.Fields, 1, "%v", e.Fields)
	}
	minus := cloud.Money(-1)
	far, zero, none := 91.0, 0.0, 0
	f("type", func(in *order.CreateInput) { in.Type = "X" })
	f("order_ref", func(in *order.CreateInput) { in.Ref = strings.Repeat("ü", 65) })
	f("order_ref", func(in *order.CreateInput) { in.Ref = "a\x00b" })
	f("customer_id", func(in *order.CreateInput) { in.CustomerID = w.stranger.Account.ID })
	f("customer_id", func(in *order.CreateInput) { in.CustomerID = w.staff.Account.ID })
	f("customer_id", func(in *order.CreateInput) { in.CustomerID = 999 })
	f("scheduled_date", func(in *order.CreateInput) { in.ScheduledDate = "2020-01-01" })
	f("scheduled_date", func(in *order.CreateInput) { in.ScheduledDate = "tomorrow" })
	f("time_window_start", func(in *order.CreateInput) { in.WindowStart, in.WindowEnd = "25:00", "17:00" })
	f("time_window_end", func(in *order.CreateInput) { in.WindowStart = "10:00" })
	f("time_window_end", func(in *order.CreateInput) { in.WindowStart, in.WindowEnd = "10:00", "10:00" })
	f("sender", func(in *order.CreateInput) { in.Sender = nil })
	f("recipient", func(in *order.CreateInput) { in.Recipient = nil })
	f("recipient.name", func(in *order.CreateInput) { in.Recipient.Name = " " })
	f("recipient.country", func(in *order.CreateInput) { in.Recipient.Country = "Canada" })
	f("recipient.email", func(in *order.CreateInput) { in.Recipient.Email = "nobody" })
	f("recipient.longitude", func(in *order.CreateInput) { in.Recipient.Latitude = &zero })
	f("recipient.latitude", func(in *order.CreateInput) { in.Recipient.Latitude, in.Recipient.Longitude = &far, &zero })
	f("recipient.address_type", func(in *order.CreateInput) { in.Recipient.Kind = "castle" })
	f("packages", func(in *order.CreateInput) { in.Packages = nil })
	f("packages", func(in *order.CreateInput) { in.Packages = make([]order.PackageInput, 201) })
	f("packages.1.weight", func(in *order.CreateInput) { in.Packages[1].Weight = 0 })
	f("packages.0.height", func(in *order.CreateInput) { in.Packages[0].Height = &zero })
	f("packages.0.quantity", func(in *order.CreateInput) { in.Packages[0].Quantity = &none })
	f("packages.0.weight_unit", func(in *order.CreateInput) { in.Packages[0].WeightUnit = "stone" })
	f("packages.0.items.0.quantity", func(in *order.CreateInput) { in.Packages[0].Items = []cloud.PackageItem{{Quantity: -1}} })
	f("service_minutes", func(in *order.CreateInput) { m := -1; in.ServiceMinutes = &m })
	f("priority", func(in *order.CreateInput) { in.Priority = 10 })
	f("age_verification", func(in *order.CreateInput) { in.AgeVerification = 20 })
	f("cod_amount", func(in *order.CreateInput) { in.COD = &minus })
	f("metadata", func(in *order.CreateInput) { in.Metadata = map[string]string{"": "x"} })
	f("metadata.k", func(in *order.CreateInput) { in.Metadata = map[string]string{"k": strings.Repeat("x", 256)} })
	f("required_skills.1", func(in *order.CreateInput) { in.Skills = []string{"tail_lift", "Über"} })
	f("required_skills", func(in *order.CreateInput) { in.Skills = slices.Repeat([]string{"heavy"}, 21) })
	skilled := input(cloud.DeliveryOrder)
	skilled.Skills = []string{"tail_lift"}
	require.Equal(t, []string{"tail_lift"}, w.find(w.create(w.staff, skilled).OrderID).RequiredSkills)
	w.rules(cloud.Rules{ExactGeocodes: true})
	require.Equal(t, "ADDRESS_NOT_GEOCODED", failure(w.orders.Create(t.Context(), w.staff, input(cloud.DeliveryOrder))))
	exact := input(cloud.DeliveryOrder)
	place := *exact.Recipient
	place.Latitude, place.Longitude = &far, &zero
	far = 43.6
	exact.Recipient = &place
	w.create(w.staff, exact)
	w.rules(cloud.Rules{})
	for _, c := range []cloud.Caller{w.broker, w.driver, {Account: cloud.Account{ID: 9, BusinessID: 42, Type: cloud.ProviderType}}} {
		require.Equal(t, "ACCOUNT_TYPE_NOT_ALLOWED", failure(w.orders.Create(t.Context(), c, input(cloud.DeliveryOrder))))
	}
	in := input(cloud.DeliveryOrder)
	in.CustomerID = w.other.Account.ID
	require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.orders.Create)(t.Context(), w.customer, in)), "a customer makes orders of its own")
	in.CustomerID, in.ScheduledDate = 0, time.Now().In(mustZone(t)).Format(time.DateOnly)
	require.Equal(t, w.customer.Account.ID, *w.create(w.customer, in).CustomerID, "today has not passed")
}

func mustZone(t *testing.T) *time.Location {
	z, err := time.LoadLocation("America/Toronto")
	require.NoError(t, err)
	return z
}

func TestListsAreBoundToTheCaller(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		a, b, c := w.ref("PO-1"), w.create(w.customer, input(cloud.PickupOrder)), w.create(w.other, input(cloud.DeliveryOrder))
		d := w.create(w.stranger, input(cloud.DeliveryOrder))
		list := func(c cloud.Caller, in order.ListInput) order.ListOutput {
			t.Helper()
			out, err := w.orders.List(t.Context(), c, in)
			require.NoError(t, err)
			return out
		}
		require.Equal(t, []cloud.OrderID{c.OrderID, b.OrderID, a.OrderID}, ids(list(w.staff, order.ListInput{}).Orders), "newest first")
		require.Equal(t, []cloud.OrderID{b.OrderID}, ids(list(w.customer, order.ListInput{}).Orders))
		require.Equal(t, []cloud.OrderID{d.OrderID}, ids(list(w.stranger, order.ListInput{}).Orders))
		require.Empty(t, list(w.customer, order.ListInput{CustomerID: w.other.Account.ID}).Orders, "another's cannot be asked for")
		require.Empty(t, list(w.driver, order.ListInput{}).Orders)
		require.Empty(t, list(w.broker, order.ListInput{}).Orders)
		out := list(w.staff, order.ListInput{Keyset: check.Keyset{Page: new(2), PerPage: new(2)}, Sort: "created_at"})
		require.Equal(t, 3, out.Total)
		require.Equal(t, []cloud.OrderID{c.OrderID}, ids(out.Orders))
		require.Equal(t, []cloud.OrderID{b.OrderID}, ids(list(w.staff, order.ListInput{Type: cloud.PickupOrder, StatusIDs: []cloud.OrderStatus{1, 3}}).Orders))
		require.Equal(t, []cloud.OrderID{a.OrderID}, ids(list(w.staff, order.ListInput{Keyword: "po-1"}).Orders))
		require.Equal(t, []cloud.OrderID{b.OrderID}, ids(list(w.staff, order.ListInput{CustomerID: w.customer.Account.ID}).Orders), "staff ask for any customer's")
		require.Equal(t, []cloud.OrderID{b.OrderID}, ids(list(w.customer, order.ListInput{CustomerID: w.customer.Account.ID}).Orders))
		for _, sort := range []string{"", "created_at", "-updated_at", "scheduled_date", "-order_status_id"} {
			in := order.ListInput{Sort: sort}
			all := ids(list(w.staff, in).Orders)
			in.PerPage = new(1)
			var got []cloud.OrderID
			for page := list(w.staff, in); ; page = list(w.staff, in) {
				require.Equal(t, 3, page.Total)
				if got = append(got, ids(page.Orders)...); page.NextCursor == nil {
					break
				}
				in.Cursor = *page.NextCursor
			}
			require.Equal(t, all, got, sort)
			other := in
			other.Keyword = "po-1"
			require.Equal(t, "VALIDATION_FAILED", failure(w.orders.List(t.Context(), w.staff, other)), "a cursor of another filter")
			if sort != "" {
				require.Empty(t, list(w.stranger, in).NextCursor, "a cursor shows nothing of another business")
				for _, o := range list(w.stranger, in).Orders {
					require.Equal(t, d.OrderID, o.OrderID)
				}
			}
		}
		empty := list(w.staff, order.ListInput{Keyset: check.Keyset{Page: new(9)}})
		require.NotNil(t, empty.Orders)
		require.Empty(t, empty.Orders)
		for _, in := range []order.ListInput{{Keyset: check.Keyset{PerPage: new(201)}}, {Keyset: check.Keyset{Page: new(-1)}}, {Sort: "body"}, {Keyword: "ab"}, {CreatedFrom: "yesterday"}, {ScheduledTo: "x"}, {Type: "Q"}} {
			require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.orders.List)(t.Context(), w.staff, in)), "%+v", in)
		}

		// A contractor sees what it holds.
		w.assign(w.broker, c.OrderID)
		require.Equal(t, []cloud.OrderID{c.OrderID}, ids(list(w.broker, order.ListInput{}).Orders))
		require.Equal(t, []cloud.OrderID{c.OrderID}, ids(list(w.staff, order.ListInput{BrokerID: w.broker.Account.ID}).Orders), "staff ask for any contractor's")
		_, err := w.orders.Find(t.Context(), w.broker, order.Key{OrderID: c.OrderID})
		require.NoError(t, err)
		require.Equal(t, "ORDER_NOT_FOUND", failure(w.orders.Find(t.Context(), w.rival, order.Key{OrderID: c.OrderID})))
	})
}

func TestUpdate(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		o := w.create(w.customer, input(cloud.DeliveryOrder))
		text, date, priority, start, end, empty := "leave at the door", "2099-01-02", 7, "09:00", "11:00", ""
		out, err := w.orders.Update(t.Context(), w.customer, order.UpdateInput{OrderID: o.OrderID, Instruction: &text})
		require.NoError(t, err)
		require.Equal(t, text, *out.Order.Instruction)
		_, err = w.orders.Update(t.Context(), w.staff, order.UpdateInput{OrderID: o.OrderID, Note: &text})
		require.NoError(t, err)
		_, err = w.orders.Update(t.Context(), w.staff, order.UpdateInput{OrderID: o.OrderID, ScheduledDate: &date, WindowStart: &start, WindowEnd: &end})
		require.NoError(t, err)
		to := address("Maria López")
		out, err = w.orders.Update(t.Context(), w.staff, order.UpdateInput{OrderID: o.OrderID, Recipient: to, Priority: &priority, Instruction: &empty})
		require.NoError(t, err)
		require.Nil(t, out.Order.Instruction, "an empty text clears")
		require.Equal(t, "Maria López", out.Order.Recipient.Name)
		require.Equal(t, out.Order, w.find(o.OrderID))
		_, err = w.orders.Update(t.Context(), w.staff, order.UpdateInput{OrderID: o.OrderID, Priority: &priority})
		require.NoError(t, err)
		require.Equal(t, []string{"6001:0>1", "6010:1>1", "6008:1>1", "6009:1>1", "6002:1>1"}, w.did(o.OrderID), "what changes nothing is not an operation")
		found, err := w.orders.Search(t.Context(), w.staff, order.SearchInput{Query: "lópez"})
		require.NoError(t, err)
		require.Len(t, found.Matches, 1, "the search knows the new name")
		require.Equal(t, "VALIDATION_FAILED", failure(checktest.Given(w.orders.Update)(t.Context(), w.staff, order.UpdateInput{OrderID: o.OrderID, WindowEnd: &empty})))
		require.Equal(t, "ORDER_NOT_FOUND", failure(w.orders.Update(t.Context(), w.other, order.UpdateInput{OrderID: o.OrderID, Note: &text})))

		w.move(o.OrderID, cloud.OrderRoutePlanned, order.PutOnRoute)
		w.move(o.OrderID, cloud.OrderOutForDelivery, order.StartDelivery)
		require.Equal(t, "ORDER_STATUS_CONFLICT", failure(w.orders.Update(t.Context(), w.staff, order.UpdateInput{OrderID: o.OrderID, Recipient: to})))
		w.move(o.OrderID, cloud.OrderDeliveryFailed, order.DeliveryResult)
		next := "2099-01-03"
		out, err = w.orders.Update(t.Context(), w.staff, order.UpdateInput{OrderID: o.OrderID, ScheduledDate: &next})
		require.NoError(t, err)
		require.Equal(t, cloud.OrderDeliveryRescheduled, out.Order.StatusID, "a new date plans a failed stop again")
		require.Equal(t, 1, out.Order.Attempts)
		require.Equal(t, "information_submitted out_for_delivery delivery_failed delivery_rescheduled", w.codes(o.OrderID))
		w.move(o.OrderID, cloud.OrderOutForDelivery, order.StartDelivery)
		w.move(o.OrderID, cloud.OrderDelivered, order.DeliveryResult)
		require.Equal(t, "ORDER_STATUS_CONFLICT", failure(w.orders.Update(t.Context(), w.staff, order.UpdateInput{OrderID: o.OrderID, Priority: &priority})))
		_, err = w.orders.Update(t.Context(), w.staff, order.UpdateInput{OrderID: o.OrderID, Note: &empty})
		require.NoError(t, err, "a note may be written for ever")
	})
}

// The public tracking answer has the order's members, found by every number.
func TestTrackingShowsTheOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, w *world) {
		in := input(cloud.DeliveryOrder)
		in.Ref, in.WindowStart, in.WindowEnd, in.Packages[1].ExternalNumber = "PO-1", "13:00", "17:00", "UPS-77"
		o := w.create(w.customer, in)
		s := tracking.New(w.db)
		shown := func(c cloud.Caller, number, verify string) tracking.PublicOutput {
			t.Helper()
			out, err := s.Public(t.Context(), c, tracking.PublicInput{Number: number, Verify: verify})
			require.NoError(t, err)
			return out
		}
		out := shown(cloud.Caller{}, o.Number, "")
		for _, number := range []string{strings.ToLower(o.Number), o.Number + "-2", "ups-77"} {
			require.Equal(t, out, shown(cloud.Caller{}, number, ""), number)
		}
		require.Equal(t, "local_delivery", out.Family)
		require.Nil(t, out.OrderRef)
		require.Equal(t, "PO-1", *shown(w.customer, o.Number, "").OrderRef)
		require.Equal(t, "D", *out.Type)
		require.Equal(t, "Acme", *out.Carrier.Name)
		require.Equal(t, 1, *out.OrderStatusID)
		require.Equal(t, "NEW_ORDER", *out.OrderStatus)
		require.Equal(t, o.ScheduledDate, out.ScheduledDate)
		require.Equal(t, &tracking.TimeWindow{Start: "13:00", End: "17:00"}, out.TimeWindow)
		require.Equal(t, "J*** S***", *out.Recipient.Name)
		require.Nil(t, out.Recipient.PostalCode)
		require.Equal(t, "Toronto", *out.Recipient.City)
		require.Len(t, out.Packages, 2)
		require.Equal(t, o.Number+"-2", out.Packages[1].TrackingNumber)
		require.Equal(t, "created", *out.Packages[0].Status)
		b, err := json.Marshal(out)
		require.NoError(t, err)
		require.NotContains(t, string(b), "Secret Lane")
		require.NotContains(t, string(b), "555")
		for _, c := range []cloud.Caller{w.staff, w.customer} {
			require.Equal(t, "Jane Smith", *shown(c, o.Number, "").Recipient.Name)
		}
		for _, c := range []cloud.Caller{w.other, w.stranger, w.driver} {
			require.Equal(t, "J*** S***", *shown(c, o.Number, "").Recipient.Name)
		}
		require.Equal(t, "M5V 2T6", *shown(cloud.Caller{}, o.Number, "0123").Recipient.PostalCode)
		timeline, err := s.Timeline(t.Context(), cloud.Caller{}, tracking.TimelineInput{Number: o.Number + "-1"})
		require.NoError(t, err)
		doc, err := json.Marshal(timeline.Data)
		require.NoError(t, err)
		require.NotContains(t, string(doc), "order_id")
		timeline, err = s.Timeline(t.Context(), w.staff, tracking.TimelineInput{Number: o.Number + "-1"})
		require.NoError(t, err)
		doc, err = json.Marshal(timeline.Data)
		require.NoError(t, err)
		require.Contains(t, string(doc), fmt.Sprintf(`"order_id":%d`, o.OrderID))

		_, err = w.orders.Delete(t.Context(), w.admin, order.OrderRef{OrderID: o.OrderID})
		require.NoError(t, err)
		_, err = s.Public(t.Context(), w.staff, tracking.PublicInput{Number: o.Number})
		require.Equal(t, "TRACKING_NOT_FOUND", code(err))
	})
}
