package rest

import (
	"context"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/tracking"
)

var providers = []cloud.AccountType{cloud.ProviderType}

var staff = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee}

var everyone = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Broker, cloud.DriverAccount, cloud.Customer, cloud.ProviderType, cloud.PlatformAdmin}

const partner = "/api/v1/third-party-delivery"

// operations is the table.
func (s *Server) operations() []Operation {
	out := append(s.accountOperations(), s.partnerOperations()...)
	out = append(out, s.staffOperations()...)
	out = append(out, s.trackingOperations()...)
	if s.cfg.Enrol != nil {
		out = append(out, define(Operation{Name: "devices.enrol", Method: "POST", Path: "/api/v1/devices/enrol", NoToken: true, Secret: true}, s.enrol, nil))
	}
	return out
}

// byID names a delivery in the path and nothing else.
type byID struct {
	ID string `path:"id"`
}

// Inputs of the partner operations: the delivery of the path and the body.
type (
	openInput struct {
		ID string `path:"id" json:"-"`
		locker.OpenInput
	}
	confirmInput struct {
		ID string `path:"id" json:"-"`
		locker.ConfirmInput
	}
	cancelInput struct {
		ID string `path:"id" json:"-"`
		locker.CancelInput
	}
	rotateInput struct {
		ID string `path:"id" json:"-"`
		locker.RotateInput
	}
	editInput struct {
		ID string `path:"id" json:"-"`
		locker.EditInput
	}
	addPackageInput struct {
		ID string `path:"id" json:"-"`
		locker.AddPackageInput
	}
	removePackageInput struct {
		ID     string `path:"id"`
		Number string `path:"tracking_number"`
	}
	reassignInput struct {
		ID string `path:"id" json:"-"`
		locker.ReassignInput
	}
	failInput struct {
		ID string `path:"id" json:"-"`
		locker.FailInput
	}
	correctInput struct {
		ID string `path:"id" json:"-"`
		locker.CorrectInput
	}
	extendInput struct {
		ID string `path:"id" json:"-"`
		locker.ExtendInput
	}
)

func (s *Server) partnerOperations() []Operation {
	l, r := s.cfg.Lockers, s.cfg.Receivers
	row := func(name, method, path string) Operation {
		return Operation{Name: name, Method: method, Path: partner + path, Types: providers}
	}
	once := func(o Operation) Operation {
		o.Idempotent = true
		return o
	}
	secret := func(o Operation) Operation {
		o.Secret = true
		return o
	}
	replay := func(o Operation) Operation {
		o.Group = Replay
		return o
	}
	return []Operation{
		define(row("third_party.me", "GET", "/me"), s.partnerMe, nil),
		define(secret(once(row("third_party.deliveries.create", "POST", "/deliveries"))), l.Create, created),
		define(secret(row("third_party.deliveries.find", "GET", "/deliveries/{id}")), func(ctx context.Context, c cloud.Caller, in byID) (locker.DeliveryOutput, error) {
			return l.Find(ctx, c, locker.DeliveryKey(in.ID))
		}, nil),
		define(secret(once(row("third_party.deliveries.open_doors", "POST", "/deliveries/{id}/open-doors"))), s.openDoors, openAnswer),
		define(row("third_party.deliveries.doors", "GET", "/deliveries/{id}/doors"), func(ctx context.Context, c cloud.Caller, in byID) (locker.DoorsOutput, error) {
			return l.Doors(ctx, c, locker.DeliveryKey(in.ID))
		}, nil),
		define(secret(row("third_party.deliveries.confirm", "POST", "/deliveries/{id}/confirm")), func(ctx context.Context, c cloud.Caller, in confirmInput) (locker.DeliveryOutput, error) {
			in.ConfirmInput.Delivery = locker.DeliveryKey(in.ID)
			return l.Confirm(ctx, c, in.ConfirmInput)
		}, nil),
		define(secret(row("third_party.deliveries.cancel", "POST", "/deliveries/{id}/cancel")), func(ctx context.Context, c cloud.Caller, in cancelInput) (locker.DeliveryOutput, error) {
			in.CancelInput.Delivery = locker.DeliveryKey(in.ID)
			return l.Cancel(ctx, c, in.CancelInput)
		}, nil),
		define(secret(row("third_party.deliveries.rotate_pickup_code", "POST", "/deliveries/{id}/pickup-code/rotate")), func(ctx context.Context, c cloud.Caller, in rotateInput) (locker.RotateOutput, error) {
			in.RotateInput.Delivery = locker.DeliveryKey(in.ID)
			return l.RotatePickupCode(ctx, c, in.RotateInput)
		}, nil),
		define(secret(row("third_party.deliveries.rotate_delivery_code", "POST", "/deliveries/{id}/delivery-code/rotate")), func(ctx context.Context, c cloud.Caller, in rotateInput) (locker.RotateDeliveryOutput, error) {
			in.RotateInput.Delivery = locker.DeliveryKey(in.ID)
			return l.RotateDeliveryCode(ctx, c, in.RotateInput)
		}, nil),
		define(secret(row("third_party.deliveries.edit", "PATCH", "/deliveries/{id}")), func(ctx context.Context, c cloud.Caller, in editInput) (locker.DeliveryOutput, error) {
			in.EditInput.Delivery = locker.DeliveryKey(in.ID)
			return l.Edit(ctx, c, in.EditInput)
		}, nil),
		define(secret(row("third_party.deliveries.add_package", "POST", "/deliveries/{id}/packages")), func(ctx context.Context, c cloud.Caller, in addPackageInput) (locker.DeliveryOutput, error) {
			in.AddPackageInput.Delivery = locker.DeliveryKey(in.ID)
			return l.AddPackage(ctx, c, in.AddPackageInput)
		}, nil),
		define(secret(row("third_party.deliveries.remove_package", "DELETE", "/deliveries/{id}/packages/{tracking_number}")), func(ctx context.Context, c cloud.Caller, in removePackageInput) (locker.DeliveryOutput, error) {
			return l.RemovePackage(ctx, c, locker.RemovePackageInput{Delivery: locker.DeliveryKey(in.ID), TrackingNumber: in.Number})
		}, nil),
		define(secret(once(row("third_party.deliveries.reassign", "POST", "/deliveries/{id}/reassign"))), s.reassign, openAnswer),
		define(secret(row("third_party.deliveries.fail", "POST", "/deliveries/{id}/fail")), func(ctx context.Context, c cloud.Caller, in failInput) (locker.DeliveryOutput, error) {
			in.FailInput.Delivery = locker.DeliveryKey(in.ID)
			return l.Fail(ctx, c, in.FailInput)
		}, nil),
		define(once(row("third_party.deliveries.correct", "POST", "/deliveries/{id}/correction")), s.correct, func(out locker.CorrectOutput) Answer {
			if out.Pending {
				return Answer{Status: fasthttp.StatusAccepted, Body: out}
			}
			return Answer{Body: out}
		}),
		define(row("third_party.deliveries.pickup", "GET", "/deliveries/{id}/pickup"), func(ctx context.Context, c cloud.Caller, in byID) (locker.PickupOutput, error) {
			return l.Pickup(ctx, c, locker.DeliveryKey(in.ID))
		}, nil),
		define(row("third_party.deliveries.extend", "POST", "/deliveries/{id}/extend"), func(ctx context.Context, c cloud.Caller, in extendInput) (locker.ExtendOutput, error) {
			in.ExtendInput.Delivery = locker.DeliveryKey(in.ID)
			return l.Extend(ctx, c, in.ExtendInput)
		}, nil),
		define(row("third_party.webhook_endpoint.find", "GET", "/webhook-endpoint"), r.Find, nil),
		define(secret(row("third_party.webhook_endpoint.save", "PUT", "/webhook-endpoint")), r.Save, nil),
		define(secret(row("third_party.webhook_endpoint.rotate_secret", "POST", "/webhook-endpoint/secret")), r.RotateSecret, nil),
		define(row("third_party.webhook_deliveries.list", "GET", "/webhook-deliveries"), r.List, nil),
		define(row("third_party.webhook_deliveries.find", "GET", "/webhook-deliveries/{id}"), r.FindDelivery, nil),
		define(replay(row("third_party.webhook_deliveries.redeliver", "POST", "/webhook-deliveries/{id}/redeliver")), r.Redeliver, nil),
	}
}

// created answers 201 for a new delivery, 200 for one that the reference named
// already.
func created(out locker.DeliveryOutput) Answer {
	if out.Created {
		return Answer{Status: fasthttp.StatusCreated, Body: out}
	}
	return Answer{Body: out}
}

// openAnswer answers 202 while the outcome is not known.
func openAnswer(out locker.OpenOutput) Answer {
	if out.Pending {
		return Answer{Status: fasthttp.StatusAccepted, Body: out}
	}
	return Answer{Body: out}
}

// takeDoors counts an opening of a delivery's cabinet: so many a minute.
func (s *Server) takeDoors(ctx context.Context, c cloud.Caller, key locker.DeliveryKey) error {
	found, err := s.cfg.Lockers.Find(ctx, c, key)
	if err != nil {
		return err
	}
	if st := s.take("doors/"+strconv.FormatInt(int64(found.Delivery.DeviceID), 10), s.cfg.Limits.Doors); !st.OK {
		return &limited{st}
	}
	return nil
}

func (s *Server) openDoors(ctx context.Context, c cloud.Caller, in openInput) (locker.OpenOutput, error) {
	in.OpenInput.Delivery = locker.DeliveryKey(in.ID)
	if err := s.takeDoors(ctx, c, in.OpenInput.Delivery); err != nil {
		return locker.OpenOutput{}, err
	}
	return s.cfg.Lockers.OpenDoors(ctx, c, in.OpenInput)
}

func (s *Server) reassign(ctx context.Context, c cloud.Caller, in reassignInput) (locker.OpenOutput, error) {
	in.ReassignInput.Delivery = locker.DeliveryKey(in.ID)
	if err := s.takeDoors(ctx, c, in.ReassignInput.Delivery); err != nil {
		return locker.OpenOutput{}, err
	}
	return s.cfg.Lockers.Reassign(ctx, c, in.ReassignInput)
}

func (s *Server) correct(ctx context.Context, c cloud.Caller, in correctInput) (locker.CorrectOutput, error) {
	in.CorrectInput.Delivery = locker.DeliveryKey(in.ID)
	if err := s.takeDoors(ctx, c, in.CorrectInput.Delivery); err != nil {
		return locker.CorrectOutput{}, err
	}
	return s.cfg.Lockers.Correct(ctx, c, in.CorrectInput)
}

// Inputs of the staff operations.
type (
	deviceInput struct {
		ID string `path:"id"`
	}
	unblockInput struct {
		ID   string `path:"id" json:"-"`
		Grid string `path:"grid_id" json:"-"`
		locker.UnblockInput
	}
)

// number reads an id of a path; what is none finds nothing.
func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (s *Server) staffOperations() []Operation {
	const devices = "/api/v1/smart-lockers/devices/{id}"
	return []Operation{
		define(Operation{Name: "smart_lockers.devices.find", Method: "GET", Path: devices, Types: staff}, func(ctx context.Context, c cloud.Caller, in deviceInput) (locker.DeviceOutput, error) {
			return s.cfg.Lockers.FindDevice(ctx, c, cloud.DeviceID(number(in.ID)))
		}, nil),
		define(Operation{Name: "smart_lockers.grids.unblock", Method: "POST", Path: devices + "/grids/{grid_id}/unblock", Types: staff}, func(ctx context.Context, c cloud.Caller, in unblockInput) (locker.GridOutput, error) {
			in.UnblockInput.Device, in.UnblockInput.Grid = cloud.DeviceID(number(in.ID)), cloud.GridID(number(in.Grid))
			return s.cfg.Lockers.Unblock(ctx, c, in.UnblockInput)
		}, nil),
	}
}

func (s *Server) trackingOperations() []Operation {
	t := s.cfg.Tracking
	const base = "/api/v1/otep"
	ld := []string{"application/ld+json"}
	return []Operation{
		define(Operation{Name: "tracking.public", Method: "GET", Path: "/api/v1/tracking/{number}"}, t.Public, nil),
		define(Operation{Name: "otep.tracking", Method: "GET", Path: base + "/trackings/{number}", Kept: true}, t.Timeline, timelineAnswer),
		define(Operation{Name: "otep.events", Method: "GET", Path: base + "/trackings/{number}/events"}, t.Events, func(out tracking.EventsOutput) Answer {
			return Answer{Body: out, ETag: true, Headers: readHeaders(out.Private)}
		}),
		define(Operation{Name: "otep.batch", Method: "POST", Path: base + "/trackings/batch"}, t.Batch, nil),
		define(Operation{Name: "otep.validate", Method: "POST", Path: base + "/validate", Media: ld}, t.Validate, nil),
		define(Operation{Name: "otep.ingest", Method: "POST", Path: base + "/ingest", Group: Ingest, NoTokenCode: "OTEP_CREDENTIALS_REQUIRED"}, t.Ingest, nil),
		define(Operation{Name: "otep.ingest_epcis", Method: "POST", Path: base + "/ingest/epcis", Group: Ingest, NoTokenCode: "OTEP_CREDENTIALS_REQUIRED", Media: ld}, t.IngestEPCIS, nil),
		define(Operation{Name: "otep.epcis_events", Method: "GET", Path: base + "/epcis/events", NoTokenCode: "OTEP_CREDENTIALS_REQUIRED"}, t.Pull, pullAnswer),
	}
}

func timelineAnswer(out tracking.TimelineOutput) Answer {
	a := Answer{Body: out, ETag: true, Headers: readHeaders(out.Private), About: out.About}
	if out.MediaType != "" {
		a.Body, a.Type = out.Data, out.MediaType
	}
	return a
}

func readHeaders(private bool) [][2]string {
	cache := "public, max-age=30"
	if private {
		cache = "private, max-age=30"
	}
	return [][2]string{{"Cache-Control", cache}, {"Vary", "Accept, Accept-Language, Authorization"}}
}

func pullAnswer(out tracking.PullOutput) Answer {
	a := Answer{Body: out.Document, Type: "application/ld+json", Headers: [][2]string{{"GS1-EPCIS-Version", "2.0.0"}, {"GS1-CBV-Version", "2.0.0"}}}
	if out.Next != "" {
		a.Headers = append(a.Headers, [2]string{"Link", "<" + out.Next + `>; rel="next"`})
	}
	return a
}
