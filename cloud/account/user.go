package account

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/check"
)

// userTypes are people that a business keeps.
var userTypes = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Broker, cloud.DriverAccount}

// User is a person of the business.
type User struct {
	ID          cloud.AccountID   `json:"id"`
	AccountType cloud.AccountType `json:"account_type"`
	Name        string            `json:"name"`
	Email       string            `json:"email"`
	Permissions []string          `json:"permissions" max:"100" doc:"Scopes of a client_employee"`
	Enabled     bool              `json:"enabled"`
	CreatedAt   *string           `json:"created_at"`
}

func showUser(a cloud.Account, l *time.Location) User {
	return User{ID: a.ID, AccountType: a.Type, Name: a.Name, Email: a.Email, Permissions: orEmpty(a.Permissions), Enabled: a.Enabled, CreatedAt: cloud.Stamp(a.CreatedAt, l)}
}

// UsersInput asks for a part of the business's people.
type UsersInput struct {
	PageInput
	Type cloud.AccountType `query:"account_type" enum:"client_admin,client_employee,broker,driver" doc:"Only people of this type"`
}

// UsersOutput lists people.
type UsersOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Users []User `json:"users"`
}

// ListUsers lists the people of the caller's business.
func (s *Service) ListUsers(ctx context.Context, c cloud.Caller, in UsersInput) (out UsersOutput, err error) {
	page, err := in.Sorted(in, accountSorts...)
	if err != nil {
		return out, err
	}
	types := userTypes
	if in.Type != "" {
		types = []cloud.AccountType{in.Type}
	}
	list, listed, l, err := s.accounts(ctx, c, page, types)
	out = UsersOutput{Result: true, PageOutput: in.Output(in, listed), Users: []User{}}
	for _, a := range list {
		out.Users = append(out.Users, showUser(a, l))
	}
	return out, err
}

// accountSorts are members that people and customers are sorted by.
var accountSorts = []string{"id", "name", "email", "created_at"}

// accounts are a part of the business's accounts of some types.
func (s *Service) accounts(ctx context.Context, c cloud.Caller, page cloud.Page, types []cloud.AccountType) (list []cloud.Account, listed cloud.Listed, l *time.Location, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := businessOf(v, c)
		if err != nil {
			return err
		}
		l = b.Location()
		list, listed, err = v.Accounts(cloud.AccountFilter{BusinessID: b.ID, Types: types, Page: page})
		return err
	})
	return list, listed, l, err
}

// ByUser names a person.
type ByUser struct {
	ID cloud.AccountID `path:"id"`
}

// UserOutput shows a person.
type UserOutput struct {
	Result bool `json:"result"`
	User   User `json:"user"`
}

// FindUser shows a person of the caller's business. Error: USER_NOT_FOUND.
func (s *Service) FindUser(ctx context.Context, c cloud.Caller, in ByUser) (out UserOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := businessOf(v, c)
		if err != nil {
			return err
		}
		a, err := owned(v, c, in.ID, userTypes, "USER_NOT_FOUND")
		out = UserOutput{Result: err == nil, User: showUser(a, b.Location())}
		return err
	})
	return out, err
}

// UserInput makes or changes a person. Members that are absent stay as they
// are; without a password the account has no login.
type UserInput struct {
	AccountType *cloud.AccountType `json:"account_type" enum:"client_admin,client_employee,broker,driver" doc:"Required of a new one"`
	Name        *string            `json:"name" max:"120" doc:"Required of a new one"`
	Email       *string            `json:"email" max:"256" doc:"Required of a new one"`
	Password    *string            `json:"password" min:"10" max:"256" doc:"A new one ends every login"`
	Permissions *cloud.Scopes      `json:"permissions" max:"100" doc:"Scopes of a client_employee"`
	Enabled     *bool              `json:"enabled" doc:"true when absent"`
}

func (s *Service) checkUser(in *UserInput, fresh bool) error {
	f := newFields()
	if fresh && in.AccountType == nil || in.AccountType != nil && *in.AccountType == "" {
		f.Say("account_type", check.MessageRequired)
	}
	f.person(in.Name, &in.Email, in.Password, fresh)
	return f.Err()
}

// person checks what every account has; the email gets its stored form.
func (f fields) person(name *string, email **string, password *string, fresh bool) {
	f.filled("name", name, fresh)
	f.filled("password", password, false)
	if *email != nil {
		lower := f.email(**email)
		*email = &lower
	} else if fresh {
		f.Say("email", check.MessageRequired)
	}
}

// AddUser makes a person. Errors: VALIDATION_FAILED, ACCOUNT_LIMIT_REACHED.
func (s *Service) AddUser(ctx context.Context, c cloud.Caller, in UserInput) (UserOutput, error) {
	if err := s.checkUser(&in, true); err != nil {
		return UserOutput{}, err
	}
	return s.saveUser(ctx, c, in, "user_made", func(v cloud.View, now time.Time) (cloud.Account, error) { return newAccount(v, c, now) })
}

// newAccount is an enabled account of the caller's business.
func newAccount(v cloud.View, c cloud.Caller, now time.Time) (cloud.Account, error) {
	id, err := v.NewID(cloud.AccountIDs)
	return cloud.Account{ID: cloud.AccountID(id), BusinessID: c.Account.BusinessID, Enabled: true, CreatedAt: now}, err
}

// ChangeUserInput changes a person.
type ChangeUserInput struct {
	ID cloud.AccountID `path:"id"`
	UserInput
}

// ChangeUser changes a person. Errors: USER_NOT_FOUND, VALIDATION_FAILED,
// LAST_ADMIN, ACCOUNT_LIMIT_REACHED.
func (s *Service) ChangeUser(ctx context.Context, c cloud.Caller, in ChangeUserInput) (UserOutput, error) {
	if err := s.checkUser(&in.UserInput, false); err != nil {
		return UserOutput{}, err
	}
	return s.saveUser(ctx, c, in.UserInput, "user_changed", func(v cloud.View, _ time.Time) (cloud.Account, error) {
		return owned(v, c, in.ID, userTypes, "USER_NOT_FOUND")
	})
}

func (s *Service) saveUser(ctx context.Context, c cloud.Caller, in UserInput, action string, find func(cloud.View, time.Time) (cloud.Account, error)) (out UserOutput, err error) {
	edit := func(a *cloud.Account) {
		set(&a.Type, in.AccountType)
		set(&a.Name, in.Name)
		set(&a.Email, in.Email)
		set(&a.Enabled, in.Enabled)
		if in.Permissions != nil {
			a.Permissions = distinct(*in.Permissions)
		}
		if a.Type != cloud.ClientEmployee {
			a.Permissions = nil
		}
	}
	err = s.save(ctx, c, action, "user", in.Password, find, edit, func(a cloud.Account, l *time.Location) any {
		out = UserOutput{Result: true, User: showUser(a, l)}
		return out
	})
	if err != nil {
		return UserOutput{}, err
	}
	return out, nil
}

// save edits an account in one transaction, which gives show's answer. A new
// password ends its logins; the caller's own is not chosen here, since neither the
// present one nor the second factor is asked for. An account that is enabled again begins
// with a new login. Another email, and switching it off, ends links to new passwords and
// logins under way.
func (s *Service) save(ctx context.Context, c cloud.Caller, action, kind string, password *string, find func(cloud.View, time.Time) (cloud.Account, error), edit func(*cloud.Account), show func(cloud.Account, *time.Location) any) error {
	hash := ""
	if password != nil {
		hash = auth.HashPassword(*password)
	}
	now := time.Now().UTC()
	err := s.cfg.Store.Decide(ctx, 0, func(v cloud.View) (*cloud.Changes, error) {
		b, err := businessOf(v, c)
		if err != nil {
			return nil, err
		}
		before, err := find(v, now)
		if err != nil {
			return nil, err
		}
		a := before
		edit(&a)
		ch := &cloud.Changes{AuditChanges: cloud.AuditChanges{Audits: audit(c, now, action, kind, int64(a.ID))}}
		if ch.Businesses, err = keepsAnAdmin(v, before, a); err != nil {
			return nil, err
		}
		limited, err := roomFor(v, before, a)
		if err != nil {
			return nil, err
		}
		if len(ch.Businesses) == 0 {
			ch.Businesses = limited
		}
		if ch.Drivers, err = reviewed(v, before, a); err != nil {
			return nil, err
		}
		if a.Email != before.Email && before.Email != "" { // a link that was sent to the former address opens nothing
			ch.EndTickets = []cloud.AccountID{a.ID}
		}
		if hash != "" {
			if a.ID == c.Account.ID {
				f := newFields()
				f.Add("password", "Your own password is changed with the present one, by user.password.change.")
				return nil, f.Err()
			}
			a.PasswordHash = hash
			if before.PasswordHash != "" {
				if err = s.cfg.addMail(v, ch, cloud.NotifyAdminPassword, a, now); err != nil {
					return nil, err
				}
			}
		}
		if before.Enabled && !a.Enabled {
			ch.EndTickets = []cloud.AccountID{a.ID}
		}
		if a.Enabled && !before.Enabled || hash != "" { // until then its logins are answered that it is off
			if err = endLogins(v, ch, c, a.ID, now); err != nil {
				return nil, err
			}
		}
		if ch.Accounts, err = unreviewed(v, a); err != nil {
			return nil, err
		}
		for _, x := range ch.Accounts {
			ch.Audits = append(ch.Audits, audit(c, now, "driver_registration_lost_email", "account", int64(x.ID))...)
		}
		ch.Accounts, ch.Answer = append(ch.Accounts, a), show(a, b.Location())
		return ch, nil
	})
	return taken(err)
}
