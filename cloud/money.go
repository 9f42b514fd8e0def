package cloud

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Money is an amount in hundredths of its currency. In JSON it is a number with
// at most two decimals.
type Money int64

// largestMoney is the largest amount that is read, in whole units.
const largestMoney = 1e12

// MarshalJSON writes the amount without trailing zeros.
func (m Money) MarshalJSON() ([]byte, error) {
	sign, n := "", uint64(m)
	if m < 0 {
		sign, n = "-", -n
	}
	s := sign + strconv.FormatUint(n/100, 10)
	if c := n % 100; c != 0 {
		s += strings.TrimSuffix("."+string([]byte{'0' + byte(c/10), '0' + byte(c%10)}), "0")
	}
	return []byte(s), nil
}

// UnmarshalJSON reads a number; more than two decimals are rounded half up,
// away from zero.
func (m *Money) UnmarshalJSON(b []byte) error {
	s := string(b)
	if s == "null" {
		return nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.Abs(f) > largestMoney || len(s) > 64 {
		return errors.New("not an amount")
	}
	if strings.ContainsAny(s, "eE") { // exponents would let a short text ask for a long number
		s = strconv.FormatFloat(f, 'f', -1, 64)
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return errors.New("not an amount")
	}
	half := big.NewRat(1, 2)
	if r.Sign() < 0 {
		half.Neg(half)
	}
	r.Add(r.Mul(r, big.NewRat(100, 1)), half)
	*m = Money(new(big.Int).Quo(r.Num(), r.Denom()).Int64()) // toward zero
	return nil
}
