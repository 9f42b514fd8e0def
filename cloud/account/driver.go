package account

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
)

const codeClient = "CLIENT_NOT_FOUND"

// maxPending bounds what strangers store in one business.
const maxPending = 500

// RegisterInput is the registration of a driver for a business.
type RegisterInput struct {
	ClientCode  string `json:"client_code" required:"true" max:"64" doc:"Code of the business"`
	Name        string `json:"name" required:"true" max:"120"`
	Phone       string `json:"phone" required:"true" max:"32"`
	Email       string `json:"email" required:"true" max:"256"`
	Password    string `json:"password" required:"true" min:"10" max:"256"`
	VehicleType string `json:"vehicle_type" max:"32"`
	Licence     string `json:"licence_number" max:"32"`
}

// RegisterOutput is the answer to Register.
type RegisterOutput struct {
	Result   bool               `json:"result"`
	DriverID cloud.AccountID    `json:"driver_id"`
	Status   cloud.DriverStatus `json:"status" doc:"pending_review"`
}

func (in *RegisterInput) check() error {
	f := newFields()
	in.Email = f.email(in.Email)
	return f.Err()
}

// Register makes a driver who may do nothing until staff of the business have
// switched the account on. At most 500 registrations of a business wait: another one
// takes the place of the oldest. Where the email has an account already nothing is
// made but an audit line, and the answer is the same: it does not show which
// emails are known. Errors: CLIENT_NOT_FOUND, VALIDATION_FAILED.
func (s *Service) Register(ctx context.Context, in RegisterInput) (RegisterOutput, error) {
	if err := in.check(); err != nil {
		return RegisterOutput{}, err
	}
	var b cloud.Business
	err := s.cfg.Store.Look(ctx, func(v cloud.View) (err error) {
		b, err = v.BusinessByCode(in.ClientCode)
		return err
	})
	if errors.Is(err, cloud.ErrNotFound) {
		return RegisterOutput{}, cloud.E(cloud.NotFound, codeClient)
	}
	if err != nil {
		return RegisterOutput{}, fmt.Errorf("find business: %w", err)
	}
	// A caller without a token causes a hash here, so hashes are made one after the other.
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return RegisterOutput{}, ctx.Err()
	}
	hash := auth.HashPassword(in.Password)
	<-s.turn
	now := time.Now().UTC().Truncate(time.Millisecond)
	var id int64
	write := func(action string, fill func(*cloud.Changes, cloud.Account)) error {
		return s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (_ *cloud.Changes, err error) {
			state, err := v.Suspension(b.ID)
			if err != nil {
				return nil, err
			}
			if state.Suspended() {
				return nil, cloud.E(cloud.Forbidden, "BUSINESS_SUSPENDED")
			}
			pending, err := v.PendingDrivers(b.ID, maxPending)
			if err != nil {
				return nil, err
			}
			if len(pending) == maxPending {
				id = int64(pending[0].Account.ID)
			} else if id, err = v.NewID(cloud.AccountIDs); err != nil {
				return nil, err
			}
			ch := &cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: []cloud.Audit{{BusinessID: b.ID, At: now, Actor: "anonymous", Action: action, Target: fmt.Sprintf("account:%d", id), Detail: "{}"}}}}
			fill(ch, cloud.Account{ID: cloud.AccountID(id), BusinessID: b.ID, Type: cloud.DriverAccount, Email: in.Email, Name: in.Name, PasswordHash: hash, CreatedAt: now})
			return ch, nil
		})
	}
	err = write("driver_registered", func(ch *cloud.Changes, a cloud.Account) {
		ch.Accounts = []cloud.Account{a}
		ch.Drivers = []cloud.Driver{{Account: a, Phone: in.Phone, Licence: in.Licence, Pending: true, Vehicle: cloud.Vehicle{Type: in.VehicleType}}}
	})
	if errors.Is(err, cloud.ErrExists) {
		err = write("driver_registration_email_in_use", func(*cloud.Changes, cloud.Account) {})
	}
	if err != nil {
		return RegisterOutput{}, fmt.Errorf("register driver: %w", err)
	}
	return RegisterOutput{Result: true, DriverID: cloud.AccountID(id), Status: cloud.DriverPending}, nil
}

// unreviewed is the driver whose registration holds an account's email, as it is to
// be without it: the email was never proven.
func unreviewed(v cloud.View, a cloud.Account) ([]cloud.Account, error) {
	if a.Email == "" {
		return nil, nil
	}
	list, _, err := v.Accounts(cloud.AccountFilter{BusinessID: a.BusinessID, Types: []cloud.AccountType{cloud.DriverAccount}, Email: a.Email, Page: cloud.Page{Sort: "id", Limit: 1}})
	if err != nil || len(list) == 0 || list[0].ID == a.ID || list[0].Enabled {
		return nil, err
	}
	d, err := v.Driver(a.BusinessID, list[0].ID)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && !d.Pending {
		return nil, nil
	}
	list[0].Email = ""
	return list, err
}

// reviewed ends the review of a driver whose account is switched on.
func reviewed(v cloud.View, before, after cloud.Account) ([]cloud.Driver, error) {
	if before.Enabled || !after.Enabled || after.Type != cloud.DriverAccount {
		return nil, nil
	}
	d, err := v.Driver(after.BusinessID, after.ID)
	if errors.Is(err, cloud.ErrNotFound) || err == nil && !d.Pending {
		return nil, nil
	}
	d.Pending = false
	return []cloud.Driver{d}, err
}
