package webhook

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/postern-io/postern/cloud"
)

// settingsWriter changes one level's settings inside a decision.
type settingsWriter struct {
	v         cloud.View
	now       time.Time
	overlap   time.Duration
	to, was   cloud.WebhookSettings // was: before the change
	business  cloud.WebhookSettings
	all       []cloud.Endpoint // of the business
	endpoints []cloud.Endpoint // of the level, as they are now
	dropped   bool             // the oldest of three secrets ended at once
	unread    bool             // no person reads the answer: a secret that is made stays unseen
	made      string           // the level's first secret, if it was made here
}

// save applies the input. Error: VALIDATION_FAILED.
func (k *settingsWriter) save(in *SettingsInput) error {
	p := problems{}
	k.secrets(in, p)
	if in.given[memberOn] {
		k.to.Off = in.Enabled != nil && !*in.Enabled
	}
	if in.given[memberEvents] {
		k.to.LifecycleEvents = split(given(in.LifecycleEvents))
	}
	if in.given[memberDevice] {
		k.to.DeviceEvents = split(given(in.DeviceEvents))
	}
	if in.given[memberTrack] {
		k.to.TrackingEvents = split(given(in.TrackingEvents))
	}
	if in.given[memberPlace] {
		k.to.PlaceEvery = 0
		if in.PlaceEvery != nil {
			k.to.PlaceEvery = time.Duration(*in.PlaceEvery) * time.Second
		}
	}
	if err := k.addresses(in, p); err != nil {
		return err
	}
	k.firstSecret(p)
	return p.err()
}

// firstSecret gives the level a secret with its first address, also one that was
// made before for addresses of before and that no person saw.
func (k *settingsWriter) firstSecret(p problems) {
	stale := k.was.Unseen && k.to.Unseen && !addressed(k.was)
	switch {
	case len(k.to.Secret) > 0 && !stale, !k.unsigned():
	case len(k.was.Secret) > 0 && !stale:
		p.add(memberSecret, "A secret is needed while there are addresses.")
	case addressed(k.to):
		k.made = NewSecret()
		k.to.Secret, k.to.Unseen = []byte(k.made), k.unread
	}
}

// secrets applies what is said about the secrets.
func (k *settingsWriter) secrets(in *SettingsInput, p problems) {
	s := &k.to
	current, next := s.Secrets(k.now)
	if next == nil && len(s.SecretNext) > 0 { // the overlap is over
		s.Secret, s.SecretNext, s.NextUntil = current, nil, time.Time{}
	}
	if in.given[memberSecret] {
		s.Secret, s.SecretNext, s.NextUntil, s.Unseen = nil, nil, time.Time{}, false
		if in.Secret != nil && *in.Secret != "" {
			s.Secret = []byte(*in.Secret)
		}
	}
	if !in.given[memberNext] {
		return
	}
	old := s.SecretNext
	s.SecretNext, s.NextUntil = nil, time.Time{}
	switch {
	case in.SecretNext == nil || *in.SecretNext == "":
	case len(s.Secret) == 0 && k.borrows(): // the business's signs on for the overlap
		business, _ := k.business.Secrets(k.now)
		s.Secret, s.SecretNext, s.NextUntil = business, []byte(*in.SecretNext), k.now.Add(k.overlap)
	case s.Unseen: // no receiver has the one before
		s.Secret, s.Unseen = []byte(*in.SecretNext), false
	case len(s.Secret) == 0:
		p.add(memberNext, "There is no secret to take the place of: set webhook_sign_secret.")
	default:
		if len(old) > 0 {
			s.Secret, k.dropped = old, true
		}
		s.SecretNext, s.NextUntil = []byte(*in.SecretNext), k.now.Add(k.overlap)
	}
	if len(s.SecretNext) > 0 && k.overlap == 0 {
		s.Secret, s.SecretNext, s.NextUntil = s.SecretNext, nil, time.Time{}
	}
}

// borrows reports whether the level is a customer's that has had addresses since
// before levels had secrets of their own: the business's signs for it until it is
// given one.
func (k *settingsWriter) borrows() bool {
	return k.to.CustomerID != 0 && len(k.was.Secret) == 0 && len(k.business.Secret) > 0 && addressed(k.was)
}

// addressed reports whether a level has addresses.
func addressed(s cloud.WebhookSettings) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(s.URLs)), func(list []cloud.HookURL) bool { return len(list) > 0 })
}

// unsigned reports whether there are addresses that would have no secret now
// that the level has none.
func (k *settingsWriter) unsigned() bool {
	if k.borrows() {
		return false
	}
	others := k.to.CustomerID == 0 && slices.ContainsFunc(k.all, func(e cloud.Endpoint) bool { return e.CustomerID != 0 && e.Enabled && e.Kind == cloud.AccountEndpoint })
	return others || addressed(k.to)
}

// addresses applies what is said about the settings' addresses, and makes the
// level's endpoints what the settings name.
func (k *settingsWriter) addresses(in *SettingsInput, p problems) error {
	urls := maps.Clone(k.to.URLs)
	if urls == nil {
		urls = map[string][]cloud.HookURL{}
	}
	byURL := map[string]*cloud.Endpoint{}
	for _, e := range k.all {
		if e.CustomerID == k.to.CustomerID && e.Kind == cloud.AccountEndpoint {
			e.Enabled = false
			byURL[e.URL] = &e
		}
	}
	for name, value := range in.urls() {
		switch {
		case !in.given[name]:
		case value == nil || len(split(*value)) == 0: // spaces and commas alone are as empty as ""
			delete(urls, name)
		case strings.TrimSpace(*value) == noEvents && k.to.CustomerID != 0:
			urls[name] = []cloud.HookURL{}
		default:
			list := []cloud.HookURL{}
			for _, u := range split(*value) {
				e := at(byURL, u)
				if e == nil {
					made, err := newEndpoint(k.v, k.to.BusinessID, k.to.CustomerID, cloud.AccountEndpoint, u, k.now)
					if err != nil {
						return err
					}
					e, byURL[u] = &made, &made
				}
				if !slices.ContainsFunc(list, func(h cloud.HookURL) bool { return h.EndpointID == e.ID }) {
					list = append(list, cloud.HookURL{EndpointID: e.ID, URL: e.URL})
				}
			}
			urls[name] = list
		}
	}
	k.to.URLs = urls
	k.enable(byURL, p)
	k.format(in, byURL, p)
	for _, u := range slices.Sorted(maps.Keys(byURL)) {
		k.endpoints = append(k.endpoints, *byURL[u])
	}
	return nil
}

// at is the endpoint of an address, however its host is written; nil when there
// is none.
func at(byURL map[string]*cloud.Endpoint, address string) (found *cloud.Endpoint) {
	if e := byURL[address]; e != nil {
		return e
	}
	for _, e := range byURL {
		if lowerOrigin(e.URL) == lowerOrigin(address) && (found == nil || e.ID < found.ID) {
			found = e
		}
	}
	return found
}

// lowerOrigin is an address with scheme and host in small letters.
func lowerOrigin(address string) string {
	scheme, rest, _ := strings.Cut(address, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	return strings.ToLower(scheme+"://"+rest[:end]) + rest[end:]
}

// enable switches the endpoints on that settings name, and none but those.
func (k *settingsWriter) enable(byURL map[string]*cloud.Endpoint, p problems) {
	hosts := map[string]bool{}
	for _, list := range k.to.URLs {
		for _, u := range list {
			e := byURL[u.URL]
			e.Enabled = !k.to.Off
			if e.Status != statusFresh {
				e.Status, e.StatusSince, e.StatusReason = statusFresh, k.now, ""
			}
			if parsed, err := url.Parse(u.URL); err == nil {
				hosts[strings.ToLower(parsed.Host)] = true
			}
		}
	}
	if len(hosts) > maxHosts {
		p.add("settings", "Give addresses of at most 20 hosts.")
	}
}

// format applies the formats that are given for addresses. An address that no setting
// names any more is native when it comes back.
func (k *settingsWriter) format(in *SettingsInput, byURL map[string]*cloud.Endpoint, p problems) {
	wanted := map[string]URLOptions{}
	for i, o := range in.URLOptions {
		o.URL = strings.TrimSpace(o.URL)
		e := at(byURL, o.URL)
		if e != nil {
			o.URL = e.URL
		}
		_, twice := wanted[o.URL]
		if e == nil || len(used(k.to, e.ID)) == 0 || twice {
			p.add(fmt.Sprintf("%s.%d.url", memberFormat, i), "The address must be one that a setting of this level names, each once.")
		}
		wanted[o.URL] = o
	}
	for u, e := range byURL {
		if in.given[memberFormat] || len(used(k.to, e.ID)) == 0 {
			wanted[u].apply(e)
		}
	}
	for _, list := range k.to.URLs {
		for i := range list {
			list[i].Numbered = byURL[list[i].URL].Numbered
		}
	}
}

func newEndpoint(v cloud.View, b cloud.BusinessID, customer cloud.AccountID, kind, address string, now time.Time) (cloud.Endpoint, error) {
	id, err := v.NewID(cloud.EndpointIDs)
	return cloud.Endpoint{ID: cloud.EndpointID(id), BusinessID: b, CustomerID: customer, Kind: kind, URL: address, SandboxEnabled: true, Events: []string{"*"},
		Enabled: true, Status: statusFresh, StatusSince: now, CreatedAt: now}, err
}

// CheckURL refuses an address that can receive no event, saying why.
func (s accountHooks) CheckURL(ctx context.Context, address string) error {
	return s.guard.CheckURL(ctx, address)
}

// Postback is the receiver of one batch of a level, to be written: the one that is
// known by the address, whose pause ends as no other call can end it, else a new
// one. Error: VALIDATION_FAILED when there is no secret to sign with.
func (s accountHooks) Postback(v cloud.View, b cloud.BusinessID, customer cloud.AccountID, address string) (cloud.Endpoint, error) {
	own, business, err := levels(v, b, customer)
	if err != nil {
		return cloud.Endpoint{}, err
	}
	borrowed := len(business.Secret) > 0 && addressed(own) // since before levels had secrets of their own
	if len(own.Secret) == 0 && !borrowed {
		p := problems{}
		p.add("postback_url", "There is no secret to sign with: save an address or webhook_sign_secret in the webhook settings first.")
		return cloud.Endpoint{}, p.err()
	}
	all, err := v.AccountEndpoints(b)
	if err != nil {
		return cloud.Endpoint{}, err
	}
	for _, e := range all {
		if e.Kind == cloud.PostbackEndpoint && e.CustomerID == customer && e.URL == address {
			if e.Status != statusFresh {
				e.Status, e.StatusSince, e.StatusReason = statusFresh, time.Now().UTC(), ""
			}
			return e, nil
		}
	}
	return newEndpoint(v, b, customer, cloud.PostbackEndpoint, address, time.Now().UTC())
}
