package server

import (
	"maps"
	"slices"

	"github.com/postern-io/postern/cloud/auth"
	"github.com/postern-io/postern/cloud/catalog"
	"github.com/postern-io/postern/cloud/oauth"
)

// rates are the limits of all nodes together by the names that settings and /docs have for
// them, in calls a minute.
type rates struct {
	calls catalog.Limits
	gate  auth.GateConfig
	oauth oauth.Limits
	pages int
	tools int
}

// RateNames lists the names of limits that Config.Rates may have.
func RateNames() []string { return slices.Sorted(maps.Keys(new(rates).byName())) }

func (r *rates) byName() map[string]*int {
	return map[string]*int{
		"authenticated": &r.calls.Authenticated, "anonymous": &r.calls.Anonymous, "parcel": &r.calls.Parcel, "parcels": &r.calls.Parcels, "parcel_all": &r.calls.ParcelAll, "replay": &r.calls.Replay, "batch": &r.calls.Batch, "quotes": &r.calls.Quotes,
		"doors": &r.calls.Doors, "ingest": &r.calls.Ingest,
		"oauth_register": &r.oauth.Register, "oauth_token": &r.oauth.Token, "oauth_fetch": &r.oauth.Fetch,
		"login_address": &r.gate.PerIP, "login_account": &r.gate.PerEmail, "pages": &r.pages, "tools": &r.tools,
	}
}

// figures are the limits in force, by name; a negative one is none.
func (r rates) figures() map[string]int {
	out := map[string]int{}
	for name, n := range r.byName() {
		out[name] = *n
	}
	return out
}

// The usual figures of what is not the pipeline's.
const (
	usualLoginAddress = 10
	usualLoginAccount = 5
	usualPages        = 60
	usualTools        = 120
)

// rates are the limits in force: 0 in Config.Rates is none.
func (c Config) rates() rates {
	r := rates{calls: c.Limits, tools: c.ToolsPerMinute}
	for name, to := range r.byName() {
		if n, set := c.Rates[name]; set {
			*to = n
			if n == 0 {
				*to = -1
			}
		}
	}
	r.calls, r.oauth = r.calls.WithDefaults(), r.oauth.WithDefaults()
	for to, usual := range map[*int]int{&r.gate.PerIP: usualLoginAddress, &r.gate.PerEmail: usualLoginAccount, &r.pages: usualPages, &r.tools: usualTools} {
		if *to == 0 {
			*to = usual
		}
	}
	return r
}
