package catalog

import (
	"context"
	"strings"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/limit"
)

// Family is a part of the interface that a business may have. While it is off,
// every address below its prefix says so, those that there are not as well.
type Family struct {
	Feature string
	Prefix  string
	Types   []cloud.AccountType
}

var inside = []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Broker, cloud.DriverAccount, cloud.Customer}

// families are those of interface 14.
var families = []Family{
	{"contractor_assignment", "/api/v1/broker-order-assignments", inside},
	{"order_chat", "/api/v1/order-chat", inside},
	{"ops_agent", "/api/v1/ops-agent", []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee}},
	{"sms_marketing", "/api/v1/sms-marketing", []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee}},
}

// Unknown is the answer to a path that no operation has: that of its family's
// gate where it is in one, else NOT_FOUND.
func (p *Pipeline) Unknown(ctx context.Context, path string, w Who) (limit.State, error) {
	for _, f := range families {
		if path == f.Prefix || strings.HasPrefix(path, f.Prefix+"/") {
			_, _, state, err := p.Admit(ctx, &Operation{Types: f.Types, Gate: f.Feature}, w)
			if err != nil {
				return state, err
			}
			return state, cloud.E(cloud.NotFound, "NOT_FOUND")
		}
	}
	return limit.State{}, cloud.E(cloud.NotFound, "NOT_FOUND")
}
