package store

import (
	"fmt"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// sortable are the columns that a list may be in the order of, by name.
type sortable map[string]sortColumn

// createdSort is the time of creation, which old rows do not have.
var createdSort = sortColumn{name: "COALESCE(created_at, 0)"}

var (
	accountSorts  = sortable{"id": {}, "name": {name: "name", text: true}, "email": {name: "email", text: true}, "created_at": createdSort}
	providerSorts = sortable{"id": {}, "code": {name: "code", text: true}, "name": {name: "name", text: true}, "created_at": createdSort}
)

// Accounts lists a part of a business's accounts.
func (v accountView) Accounts(f cloud.AccountFilter) ([]cloud.Account, cloud.Listed, error) {
	var c conditions
	c.and("business_id = $%d", int64(f.BusinessID))
	if len(f.Types) > 0 {
		var types []any
		for _, t := range f.Types {
			types = append(types, string(t))
		}
		c.and("type IN "+oneOf(len(types)), types...)
	}
	if f.ProviderID != 0 {
		c.and("provider_id = $%d", int64(f.ProviderID))
	}
	if f.Enabled {
		c.and("enabled = $%d", true)
	}
	if f.Email != "" {
		c.and("email = $%d", strings.ToLower(f.Email))
	}
	return part(v.snapshot, keyList{from: "account", columns: accountColumns, where: c, page: f.Page}, accountSorts, scanAccount)
}

// Providers lists a part of a business's providers.
func (v accountView) Providers(b cloud.BusinessID, p cloud.Page) ([]cloud.Provider, cloud.Listed, error) {
	var c conditions
	c.and("business_id = $%d", int64(b))
	return part(v.snapshot, keyList{from: "provider", columns: providerColumns, where: c, page: p}, providerSorts, scanProvider)
}

// part reads a part of a list in the order that its page asks for. Names of columns
// come from here, never from a caller.
func part[T any](v *snapshot, l keyList, sorts sortable, scan func(rows, *T) error) ([]T, cloud.Listed, error) {
	by, ok := sorts[l.page.Sort]
	if !ok {
		return nil, cloud.Listed{}, fmt.Errorf("%s cannot be sorted by %q", l.from, l.page.Sort)
	}
	l.by = by
	out, found, err := readKeyList(v.ctx, v.q, l, scan)
	return found, out, err
}
