package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/postern-io/postern/cloud"
)

// Accounts lists a part of a business's accounts, and says how many there are.
func (v *view) Accounts(f cloud.AccountFilter) ([]cloud.Account, int, error) {
	where, args := "business_id = $1", []any{int64(f.BusinessID)}
	also := func(sql string, arg any) {
		args = append(args, arg)
		where += fmt.Sprintf(sql, len(args))
	}
	if len(f.Types) > 0 {
		var marks []string
		for _, t := range f.Types {
			args = append(args, string(t))
			marks = append(marks, fmt.Sprintf("$%d", len(args)))
		}
		where += " AND type IN (" + strings.Join(marks, ", ") + ")"
	}
	if f.ProviderID != 0 {
		also(" AND provider_id = $%d", int64(f.ProviderID))
	}
	if f.Enabled {
		also(" AND enabled = $%d", true)
	}
	if f.Email != "" {
		also(" AND email = $%d", strings.ToLower(f.Email))
	}
	return part(v, "account", accountColumns, where, args, f.Page, []string{"name", "email", "created_at"}, scanAccount)
}

// Providers lists a part of a business's providers, and says how many there
// are.
func (v *view) Providers(b cloud.BusinessID, p cloud.Page) ([]cloud.Provider, int, error) {
	return part(v, "provider", providerColumns, "business_id = $1", []any{int64(b)}, p, []string{"code", "name", "created_at"}, scanProvider)
}

// part reads a part of a table's rows, sorted by one of some columns or by id.
// Names of columns come from here, never from a caller.
func part[T any](v *view, table, columns, where string, args []any, p cloud.Page, sorts []string, scan func(rows, *T) error) ([]T, int, error) {
	order := ""
	if i := slices.Index(sorts, p.Sort); i >= 0 {
		order = sorts[i] + down(p) + ", "
	} else if p.Sort != "id" {
		return nil, 0, fmt.Errorf("%s cannot be sorted by %q", table, p.Sort)
	}
	from := " FROM " + table + " WHERE " + where
	total, err := one(v.ctx, v.q, "SELECT count(*)"+from, scanInt, args...)
	if err != nil {
		return nil, 0, err
	}
	n := len(args)
	sql := fmt.Sprintf("SELECT %s%s ORDER BY %sid%s LIMIT $%d OFFSET $%d", columns, from, order, down(p), n+1, n+2)
	list, err := list(v.ctx, v.q, sql, scan, append(slices.Clone(args), p.Limit, p.Offset)...)
	return list, int(total), err
}

func down(p cloud.Page) string {
	if p.Down {
		return " DESC"
	}
	return ""
}
