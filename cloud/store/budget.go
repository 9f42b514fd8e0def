package store

import (
	"cmp"
	"errors"
	"math"

	"github.com/postern-io/postern/cloud"
)

// What a key did on a day is one row, which grows only as far as the bounds let
// it: of decisions at once, on all nodes, those that fit are written.
const (
	sqlTakeBudget = `INSERT INTO key_use (key, day, writes, money) VALUES ($1, $2, $3, $4)
ON CONFLICT (key, day) DO UPDATE SET writes = key_use.writes + excluded.writes, money = key_use.money + excluded.money
WHERE key_use.writes + excluded.writes <= $5 AND key_use.money + excluded.money <= $6`
	sqlDropBudgets = `DELETE FROM key_use WHERE day < $1`
)

// errOverBudget is the error of a decision that would pass a bound of its key.
var errOverBudget = errors.New("a bound of the key is reached")

// budget takes what a decision uses from the day of its call's key.
func (w *writer) budget(v cloud.View, call *cloud.Call, c *cloud.Changes) error {
	if call == nil || call.Budget == nil {
		return nil
	}
	b := call.Budget
	writes, money, err := b.Use(v, c, !call.Counted())
	if err != nil || writes == 0 && money == 0 {
		return err
	}
	w.add(mustFit, sqlTakeBudget, b.Key, b.Day, writes, int64(money), cmp.Or(int64(b.Policy.WritesPerDay), math.MaxInt64/2), cmp.Or(int64(b.Policy.MoneyPerDay), math.MaxInt64/2))
	return nil
}
