package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
	"github.com/postern-io/postern/protocol/topic"
	"github.com/postern-io/postern/protocol/wire"
	"github.com/postern-io/postern/protocol/wiring"
)

// CabinetInput is what a new cabinet needs.
type CabinetInput struct {
	Name       string `json:"device_name" required:"true" max:"120"`
	Code       string `json:"device_code" required:"true" max:"32" doc:"Unique in the deployment and fixed: 1 to 32 of A-Z, a-z, 0-9, _ and -, such as PIER-7"`
	Type       string `json:"device_type" enum:"smart_locker,kiosk,smart_drop,scan_post" default:"smart_locker" doc:"scan_post: a warehouse post, whose agent scans labels of parcels. It has no doors, and is fixed"`
	Address    string `json:"address" max:"200" doc:"One line"`
	PostalCode string `json:"postal_code" max:"20" pattern:"^ *[0-9A-Za-z][0-9A-Za-z -]*$" example:"M5V 2T6" doc:"Of the address: carriers look for lockers by it"`
	Country    string `json:"country" format:"country" doc:"Of the address: ISO 3166-1 alpha-2, such as CA"`
	Protocol   string `json:"protocol" enum:"mqtt,http" default:"mqtt" doc:"mqtt: a cabinet that runs the edge agent. http: a simple device that calls the cloud, which decides for it"`
	Layout     string `json:"layout" enum:"small,medium,large" doc:"Required but for a warehouse post, which has none. Compartments of the cabinet: 8 (2 S, 4 M, 2 L), 12 (3 S, 6 M, 3 L) or 24 (6 S, 12 M, 4 L, 2 XL)"`
}

// DeviceInput names a cabinet.
type DeviceInput struct {
	ID cloud.DeviceID `path:"id" json:"-"`
}

// DeviceBody shows a cabinet that may enrol.
type DeviceBody struct {
	ID           cloud.DeviceID `json:"device_id"`
	Code         string         `json:"device_code"`
	Name         string         `json:"device_name"`
	Type         string         `json:"device_type"`
	Address      string         `json:"address"`
	Protocol     string         `json:"protocol" doc:"mqtt: it runs the edge agent. http: it calls the cloud"`
	Compartments int            `json:"compartments"`
}

// EnrolmentBody is what lets a cabinet enrol. It is shown once: of the token only a
// hash is kept.
type EnrolmentBody struct {
	Token     string  `json:"token" doc:"Good once, for this device code; shown this once"`
	ExpiresAt *string `json:"expires_at"`
	Line      string  `json:"line" doc:"What edge enrol is given, typed or scanned: address, device code and token"`
}

// EnrolmentOutput shows a cabinet with its enrolment token.
type EnrolmentOutput struct {
	Result    bool          `json:"result"`
	Device    DeviceBody    `json:"device"`
	Enrolment EnrolmentBody `json:"enrolment"`
}

// AddCabinet makes a cabinet or a warehouse post of the caller's business and its enrolment
// token.
// Error: VALIDATION_FAILED, also for a code that exists.
func (s *Service) AddCabinet(ctx context.Context, c cloud.Caller, in CabinetInput) (out EnrolmentOutput, err error) {
	layout, err := in.check()
	if err != nil {
		return out, err
	}
	err = s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := v.Business(c.Account.BusinessID)
		if err != nil {
			return nil, err
		}
		limited, err := roomFor(v, b)
		if err != nil {
			return nil, err
		}
		ids := IDs{View: v}
		now := time.Now().UTC()
		ch := &cloud.Changes{AccountChanges: cloud.AccountChanges{Businesses: limited}}
		cabinet := Cabinet{Code: in.Code, Name: in.Name, Type: cmp.Or(in.Type, cloud.TypeSmartLocker), Address: in.Address, PostalCode: cloud.CleanPostalCode(in.PostalCode), Country: strings.ToUpper(in.Country), Layout: layout}
		if in.Protocol == cloud.ProtocolHTTP {
			cabinet.becomeHTTP()
		}
		d := *cabinet.Rows(ch, ids.Next, b, s.cfg.Pinned, now)
		if ids.Err != nil {
			return nil, ids.Err
		}
		out = s.admit(ch, c, b, d, "cabinet_made", now)
		return ch, nil
	})
	if errors.Is(err, cloud.ErrExists) {
		f := check.Fields{}
		f.Add("device_code", "A cabinet with this code exists.")
		err = f.Err()
	}
	if err != nil {
		return EnrolmentOutput{}, err
	}
	return out, nil
}

// roomFor refuses a cabinet beyond the limit that the platform set for a business. Below
// one the business's row is written, so that of two that take the last place one looks
// again. Error: CABINET_LIMIT_REACHED.
func roomFor(v cloud.View, b cloud.Business) ([]cloud.Business, error) {
	state, err := v.Suspension(b.ID)
	limit := state.Limits.Cabinets
	if err != nil || limit == 0 {
		return nil, err
	}
	list, _, err := v.Devices(cloud.DeviceFilter{BusinessID: b.ID, Page: cloud.Page{Sort: "id", Offset: limit - 1, Limit: 1}})
	if err == nil && len(list) > 0 {
		err = cloud.E(cloud.Conflict, "CABINET_LIMIT_REACHED", limit)
	}
	return []cloud.Business{b}, err
}

// RenewToken makes another enrolment token for a cabinet of the caller's business
// that never enrolled, whose hardware was replaced, or that was reported as stolen and
// is back; those made since then stay good until they end or one is used. Errors:
// DEVICE_NOT_FOUND, DEVICE_ENROLLED, DEVICE_DISABLED (retired).
func (s *Service) RenewToken(ctx context.Context, c cloud.Caller, in DeviceInput) (out EnrolmentOutput, err error) {
	err = s.cfg.Store.Decide(ctx, in.ID, func(v cloud.View) (*cloud.Changes, error) {
		d, err := v.Device(in.ID)
		if errors.Is(err, cloud.ErrNotFound) || err == nil && (d.BusinessID != c.Account.BusinessID || d.Protocol == cloud.ProtocolMock) {
			return nil, cloud.E(cloud.NotFound, "DEVICE_NOT_FOUND")
		}
		if err != nil {
			return nil, err
		}
		if !d.RetiredAt.IsZero() {
			return nil, &cloud.Error{Kind: cloud.Conflict, Code: "DEVICE_DISABLED", Details: map[string]any{"status": cloud.StatusRetired}}
		}
		if !d.EnrolledAt.IsZero() && !d.IsCutOff() {
			return nil, cloud.E(cloud.Conflict, "DEVICE_ENROLLED")
		}
		b, err := v.Business(d.BusinessID)
		if err != nil {
			return nil, err
		}
		ch := &cloud.Changes{}
		out = s.admit(ch, c, b, d, "enrolment_token_made", time.Now().UTC())
		return ch, nil
	})
	if err != nil {
		return EnrolmentOutput{}, err
	}
	return out, nil
}

// admit puts a fresh enrolment token of a cabinet into ch and shows it.
func (s *Service) admit(ch *cloud.Changes, c cloud.Caller, b cloud.Business, d cloud.Device, action string, now time.Time) EnrolmentOutput {
	token, row := s.cfg.NewToken(d.ID, now)
	ch.Enrolments = append(ch.Enrolments, row)
	ch.Audits = append(ch.Audits, cloud.Audit{BusinessID: b.ID, At: now, Actor: fmt.Sprintf("account:%d", c.Account.ID), Action: action, Target: d.Code, Detail: "{}"})
	var conf wire.Config
	_ = wire.Decode(d.Config, &conf) // ours; a former one that cannot be read has no compartments to show
	return EnrolmentOutput{Result: true,
		Device:    DeviceBody{d.ID, d.Code, d.Name, d.Type, d.Address, d.Protocol, len(conf.Layout)},
		Enrolment: EnrolmentBody{token, cloud.Stamp(row.ExpiresAt, b.Location()), c.BaseURL + " " + d.Code + " " + token}}
}

func (in *CabinetInput) check() ([]wire.LayoutDoor, error) {
	f := check.Fields{}
	in.Name, in.Code, in.Address = strings.TrimSpace(in.Name), strings.TrimSpace(in.Code), strings.TrimSpace(in.Address)
	if in.Name == "" {
		f.Say("device_name", check.MessageRequired)
	}
	f.Line("device_name", in.Name, 120)
	f.Line("address", in.Address, 200)
	if !topic.ValidCode(in.Code) {
		f.Add("device_code", "Use 1 to 32 of A-Z, a-z, 0-9, _ and -, such as PIER-7.")
	}
	if strings.HasPrefix(in.Code, cloud.MockCodePrefix) {
		f.Add("device_code", "Codes that begin with MOCK- are those of mock lockers.")
	}
	if in.Type == cloud.TypeScanPost {
		in.checkPost(f)
		return nil, f.Err()
	}
	t, ok := wiring.Find(in.Layout)
	switch {
	case ok:
		return Layout(t), f.Err()
	case in.Layout == "":
		f.Say("layout", check.MessageRequired)
	default:
		f.Add("layout", "Choose small, medium or large.")
	}
	return nil, f.Err()
}

// checkPost adds what a warehouse post cannot have.
func (in *CabinetInput) checkPost(f check.Fields) {
	if in.Layout != "" {
		f.Add("layout", "A warehouse post has no doors.")
	}
	if in.Protocol == cloud.ProtocolHTTP {
		f.Add("protocol", "A warehouse post runs the edge agent: its protocol is mqtt.")
	}
}
