// Package api declares the operations of the cloud: each once, as a row of the
// catalogue over the typed function of a feature. It decides nothing itself.
package api

import (
	"context"
	"slices"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/account"
	"github.com/postern-io/postern/cloud/app"
	"github.com/postern-io/postern/cloud/approval"
	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/chat"
	"github.com/postern-io/postern/cloud/collection"
	"github.com/postern-io/postern/cloud/job"
	"github.com/postern-io/postern/cloud/live"
	"github.com/postern-io/postern/cloud/locker"
	"github.com/postern-io/postern/cloud/mock"
	"github.com/postern-io/postern/cloud/object"
	"github.com/postern-io/postern/cloud/order"
	"github.com/postern-io/postern/cloud/platform"
	"github.com/postern-io/postern/cloud/push"
	"github.com/postern-io/postern/cloud/route"
	"github.com/postern-io/postern/cloud/setup"
	"github.com/postern-io/postern/cloud/tracking"
	"github.com/postern-io/postern/cloud/webhook"
)

// Config is what New needs.
type Config struct {
	Store     collection.Store // of families that need nothing else
	Pipeline  *catalog.Pipeline
	Gate      *auth.Gate
	Auth      *auth.Service
	Lockers   *locker.Service
	Mocks     *mock.Service
	Tracking  *tracking.Service
	Receivers *webhook.Service
	Orders    *order.Service
	Accounts  *account.Service
	Apps      *app.Service
	Routes    *route.Service
	Approvals *approval.Service
	Chat      *chat.Service
	Files     *object.Files
	Live      *live.Service
	Pushes    *push.Reader
	Platform  *platform.Service
	Jobs      *job.Service
	// Setup makes cabinets; nil: there are no such operations.
	Setup *setup.Service
	// Enrol gives a device its secrets for a one-time token and registers its
	// public key, nil when it has none; the answer is encoded as JSON. nil: there
	// is no such operation.
	Enrol func(ctx context.Context, code, token string, publicKey []byte) (any, error)
}

// New declares the operations. Services that are missing can be described and not
// called.
func New(c Config) *catalog.Catalog {
	if c.Lockers == nil {
		c.Lockers = new(locker.Service)
	}
	if c.Mocks == nil {
		c.Mocks = new(mock.Service)
	}
	if c.Receivers == nil {
		c.Receivers = new(webhook.Service)
	}
	if c.Platform == nil {
		c.Platform = new(platform.Service)
	}
	if c.Jobs == nil {
		c.Jobs = job.New(job.Config{})
	}
	if c.Chat == nil {
		c.Chat = new(chat.Service)
	}
	var table *catalog.Catalog
	rows := [][]catalog.Operation{
		c.accounts(),
		c.own(),
		c.partner(),
		c.customers(),
		c.mocks(),
		c.staff(),
		staffCodes(c),
		c.lockerLists(),
		c.deviceOrders(),
		c.notifications(),
		c.operators(),
		c.tracking(),
		c.orders(),
		c.assignments(),
		c.thirdParties(),
		c.routes(),
		c.webhooks(),
		c.subscriptions(),
		c.containers(),
		aliases(c),
		c.keeping(),
		apps(c),
		c.files(),
		approvals(c),
		chats(c),
		savedViews(c),
		distributions(c),
		cabinetProfiles(c),
		diagnoses(c),
		rollouts(c),
		jobs(c),
		c.live(),
		c.work(&table),
		reports(c),
		searches(c, func() *catalog.Catalog { return table }),
	}
	if c.Setup != nil {
		rows = append(rows, c.cabinets())
	}
	if c.Enrol != nil {
		rows = append(rows, c.enrolment())
	}
	table = catalog.New(answered(slices.Concat(rows...)))
	table.AddTools(agentTools()...)
	table.AddTools(lockerTools(table)...)
	table.AddTools(table.WholeTools(catalog.LockersServer)...)
	table.MakeNouns(navigation...)
	c.Jobs.Serve(table)
	return table
}

// PricesHidden says whether a caller sees no prices in an operation's answers.
func PricesHidden(_ context.Context, c cloud.Caller, o *catalog.Operation) (bool, error) {
	return c.PricesHidden(o.Family), nil
}

// Who may call.
var (
	providers     = []cloud.AccountType{cloud.ProviderType}
	operatorTypes = []cloud.AccountType{cloud.PlatformAdmin}
	admins        = []cloud.AccountType{cloud.ClientAdmin}
	staff         = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee}
	// those of a business and of its providers, each about its own
	staffProviders = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.ProviderType}
	people         = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Broker, cloud.DriverAccount, cloud.Customer, cloud.PlatformAdmin}
	everyone       = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Broker, cloud.DriverAccount, cloud.Customer, cloud.ProviderType, cloud.PlatformAdmin}
)

type none struct{}

// doneOutput is the answer of what has nothing to say.
type doneOutput struct {
	Result bool `json:"result"`
}
