package cloud

import (
	"errors"
	"slices"
	"time"
)

// KeyPolicy is what a key, or the grant of a program, may do without a person.
// The zero policy holds nothing back. Headers of a connection only add to it.
type KeyPolicy struct {
	// Approval says which writes wait for a person: one of the Ask…; empty is
	// AskNever.
	Approval   string   `json:"approval,omitempty"`
	DryRunOnly bool     `json:"dry_run_only,omitempty"` // writes are only tried
	Surfaces   []string `json:"surfaces,omitempty"`     // some of api, graphql, mcp, live; empty: all
	// WritesPerDay and MoneyPerDay bound what is done without a person in a day of
	// UTC; 0: no bound. Money is what the prices of orders add up to.
	WritesPerDay int   `json:"writes_per_day,omitempty"`
	MoneyPerDay  Money `json:"money_per_day,omitempty"`
}

// Which writes wait for a person.
const (
	AskNever = "never"
	AskHigh  = "high" // those of high risk
	AskAll   = "all"
)

// AskLevels are what a policy may say of approval, least first.
func AskLevels() []string { return []string{AskNever, AskHigh, AskAll} }

// Asks reports whether any write waits for a person.
func (p KeyPolicy) Asks() bool { return p.Approval == AskHigh || p.Approval == AskAll }

// Waits reports whether a write of a risk waits for a person.
func (p KeyPolicy) Waits(high bool) bool {
	return p.Approval == AskAll || p.Approval == AskHigh && high
}

// On reports whether the key is good on a surface.
func (p KeyPolicy) On(surface string) bool {
	return len(p.Surfaces) == 0 || slices.Contains(p.Surfaces, surface)
}

// Budget is what a call takes from the day of its key: one write for each of its
// orders and jobs, one at least, in the transactions of the call. The store
// refuses a decision that would pass a bound, with DAILY_LIMIT_REACHED.
type Budget struct {
	Key    string // whose day: of a key, or of a grant with all its tokens
	Day    string // YYYY-MM-DD, UTC
	Policy KeyPolicy
}

// BudgetOf is the budget of a token's calls at now, nil when it has no bound.
func BudgetOf(t Token, key string, now time.Time) *Budget {
	if t.Policy.WritesPerDay == 0 && t.Policy.MoneyPerDay == 0 {
		return nil
	}
	return &Budget{Key: key, Day: now.UTC().Format(time.DateOnly), Policy: t.Policy}
}

// Use is what changes take of a budget: writes, and what the prices of orders
// rise by. Orders that are made later have no price yet: a key with a bound of
// money cannot ask for them.
func (b *Budget) Use(v View, c *Changes, first bool) (writes int, money Money, err error) {
	for _, o := range c.Orders {
		old, err := v.Order(o.BusinessID, o.ID)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return 0, 0, err
		}
		if err != nil {
			writes++
		}
		money += max(0, o.total()-old.total())
	}
	for _, j := range c.Jobs {
		if _, err := v.Job(j.BusinessID, j.ID); errors.Is(err, ErrNotFound) {
			if writes += j.Total; b.Policy.MoneyPerDay != 0 {
				return 0, 0, b.over("money_per_day", b.Policy.MoneyPerDay)
			}
		}
	}
	if first {
		writes = max(writes, 1)
	}
	switch {
	case b.Policy.WritesPerDay != 0 && writes > b.Policy.WritesPerDay:
		return 0, 0, b.over("writes_per_day", b.Policy.WritesPerDay)
	case b.Policy.MoneyPerDay != 0 && money > b.Policy.MoneyPerDay:
		return 0, 0, b.over("money_per_day", b.Policy.MoneyPerDay)
	}
	return writes, money, nil
}

// Over is the error of a decision that would pass a bound.
func (b *Budget) Over() error { return b.over("day", b.Day) }

func (b *Budget) over(name string, allowed any) error {
	day, err := time.Parse(time.DateOnly, b.Day)
	wait := int(time.Until(day.AddDate(0, 0, 1)) / time.Second)
	if err != nil || wait < 1 {
		wait = 1
	}
	return &Error{Kind: Limited, Code: "DAILY_LIMIT_REACHED", RetryAfter: wait, Details: map[string]any{name: allowed,
		"limits": map[string]any{"writes_per_day": b.Policy.WritesPerDay, "money_per_day": b.Policy.MoneyPerDay}}}
}

func (o Order) total() Money {
	if o.Prices == nil {
		return 0
	}
	return o.Prices.Total
}
