package account

import (
	"context"
	"time"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/check"
)

var customerTypes = []cloud.AccountType{cloud.Customer}

// Customer is a company that sends through the business. Its id is that of its
// account.
type Customer struct {
	ID          cloud.AccountID `json:"id"`
	Name        string          `json:"name"`
	Email       string          `json:"email"`
	PriceHidden []string        `json:"price_hidden_families"`
	Enabled     bool            `json:"enabled"`
	CreatedAt   *string         `json:"created_at"`
}

func showCustomer(a cloud.Account, l *time.Location) Customer {
	return Customer{ID: a.ID, Name: a.Name, Email: a.Email, PriceHidden: orEmpty(a.PriceHidden), Enabled: a.Enabled, CreatedAt: cloud.Stamp(a.CreatedAt, l)}
}

// CustomersInput asks for a part of the business's customers.
type CustomersInput struct{ PageInput }

// CustomersOutput lists customers.
type CustomersOutput struct {
	Result bool `json:"result"`
	check.PageOutput
	Customers []Customer `json:"customers"`
}

// ListCustomers lists the customers of the caller's business.
func (s *Service) ListCustomers(ctx context.Context, c cloud.Caller, in CustomersInput) (out CustomersOutput, err error) {
	page, err := in.Sorted(in, accountSorts...)
	if err != nil {
		return out, err
	}
	list, listed, l, err := s.accounts(ctx, c, page, customerTypes)
	out = CustomersOutput{Result: true, PageOutput: in.Output(in, listed), Customers: []Customer{}}
	for _, a := range list {
		out.Customers = append(out.Customers, showCustomer(a, l))
	}
	return out, err
}

// ByCustomer names a customer.
type ByCustomer struct {
	ID cloud.AccountID `path:"id"`
}

// CustomerOutput shows a customer.
type CustomerOutput struct {
	Result   bool     `json:"result"`
	Customer Customer `json:"customer"`
}

// FindCustomer shows a customer of the caller's business. Error:
// CUSTOMER_NOT_FOUND.
func (s *Service) FindCustomer(ctx context.Context, c cloud.Caller, in ByCustomer) (out CustomerOutput, err error) {
	err = s.cfg.Store.Look(ctx, func(v cloud.View) error {
		b, err := businessOf(v, c)
		if err != nil {
			return err
		}
		a, err := owned(v, c, in.ID, customerTypes, "CUSTOMER_NOT_FOUND")
		out = CustomerOutput{Result: err == nil, Customer: showCustomer(a, b.Location())}
		return err
	})
	return out, err
}

// CustomerInput makes or changes a customer. Members that are absent stay as
// they are; without a password the account has no login.
type CustomerInput struct {
	Name        *string   `json:"name" max:"120" doc:"Required of a new one"`
	Email       *string   `json:"email" max:"256" doc:"Required of a new one"`
	Password    *string   `json:"password" min:"10" max:"256" doc:"A new one ends every login"`
	PriceHidden *[]string `json:"price_hidden_families" max:"100" item_enum:"local_delivery,label,shipping_service,ltl,storage,shipout,moving,device"`
	Enabled     *bool     `json:"enabled" doc:"true when absent"`
}

func (in *CustomerInput) check(fresh bool) error {
	f := newFields()
	f.person(in.Name, &in.Email, in.Password, fresh)
	return f.Err()
}

// SetsPassword reports whether the customer can log in with it.
func (in CustomerInput) SetsPassword() bool { return in.Password != nil }

// AddCustomer makes a customer with its account. Error: VALIDATION_FAILED.
func (s *Service) AddCustomer(ctx context.Context, c cloud.Caller, in CustomerInput) (CustomerOutput, error) {
	if err := in.check(true); err != nil {
		return CustomerOutput{}, err
	}
	return s.saveCustomer(ctx, c, in, "customer_made", func(v cloud.View, now time.Time) (cloud.Account, error) {
		a, err := newAccount(v, c, now)
		a.Type = cloud.Customer
		return a, err
	})
}

// ChangeCustomerInput changes a customer.
type ChangeCustomerInput struct {
	ID cloud.AccountID `path:"id"`
	CustomerInput
}

// ChangeCustomer changes a customer. Errors: CUSTOMER_NOT_FOUND,
// VALIDATION_FAILED.
func (s *Service) ChangeCustomer(ctx context.Context, c cloud.Caller, in ChangeCustomerInput) (CustomerOutput, error) {
	if err := in.check(false); err != nil {
		return CustomerOutput{}, err
	}
	return s.saveCustomer(ctx, c, in.CustomerInput, "customer_changed", func(v cloud.View, _ time.Time) (cloud.Account, error) {
		return owned(v, c, in.ID, customerTypes, "CUSTOMER_NOT_FOUND")
	})
}

func (s *Service) saveCustomer(ctx context.Context, c cloud.Caller, in CustomerInput, action string, find func(cloud.View, time.Time) (cloud.Account, error)) (out CustomerOutput, err error) {
	err = s.save(ctx, c, action, "customer", in.Password, find, func(a *cloud.Account) {
		set(&a.Name, in.Name)
		set(&a.Email, in.Email)
		set(&a.Enabled, in.Enabled)
		if in.PriceHidden != nil {
			a.PriceHidden = distinct(*in.PriceHidden)
		}
	}, func(a cloud.Account, l *time.Location) any {
		out = CustomerOutput{Result: true, Customer: showCustomer(a, l)}
		return out
	})
	if err != nil {
		return CustomerOutput{}, err
	}
	return out, nil
}
