package api_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/catalog"
)

// amounts are the members that never reach a caller from whom prices are hidden
// (interface 1.5).
var amounts = []string{"shipping_price", "price_details", "currency", "tax", "surcharges", "total_price", "rate_price", "paid_amount", "balance_due"}

// secret is the amount in every price of a random answer: nothing else holds it.
const secret = cloud.Money(9_876_543_21)

// random fills a value with something, prices with the secret.
func random(r *rand.Rand, v reflect.Value, price bool, depth int) {
	if v.Type() == reflect.TypeFor[time.Time]() || v.Type() == reflect.TypeFor[json.RawMessage]() {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if depth < 8 && (price || r.IntN(4) > 0) {
			v.Set(reflect.New(v.Type().Elem()))
			random(r, v.Elem(), price, depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			random(r, v.Index(i), price, depth+1)
		}
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		e := reflect.New(v.Type().Elem()).Elem()
		random(r, e, price, depth+1)
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), e)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && depth < 12 {
				random(r, v.Field(i), price || f.Tag.Get("price") == "true", depth+1)
			}
		}
	case reflect.String:
		if price {
			v.SetString("CAD 9876543.21")
		} else {
			v.SetString("text")
		}
	case reflect.Int, reflect.Int64, reflect.Int32:
		if price {
			v.SetInt(int64(secret))
		} else {
			v.SetInt(int64(r.IntN(1000)))
		}
	case reflect.Float64:
		if price {
			v.SetFloat(9876543.21)
		} else {
			v.SetFloat(float64(r.IntN(1000)))
		}
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	}
}

// Whatever an operation answers, nothing of its prices is left when they are
// hidden, and what looks like a price is marked as one.
func TestNoAnswerTellsHiddenPrices(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	seen := 0
	for _, o := range table().Operations() {
		if !catalog.HasPrices(o.Out()) {
			continue
		}
		for range 20 {
			v := reflect.New(o.Out()).Elem()
			random(r, v, false, 0)
			raw, err := json.Marshal(catalog.Hide(v.Interface()))
			require.NoError(t, err)
			require.NotContains(t, string(raw), "9876543.21", o.Name)
			shown, err := json.Marshal(v.Interface())
			require.NoError(t, err)
			if !strings.Contains(string(shown), "9876543.21") {
				continue
			}
			seen++
			require.Equal(t, cloud.LocalDelivery, o.Family, "%s has prices of no family", o.Name)
			require.Contains(t, string(raw), `"price_hidden":true`, o.Name)
			for _, name := range amounts {
				require.NotContains(t, string(raw), `"`+name+`"`, o.Name)
			}
		}
	}
	require.Greater(t, seen, 100)
}

// A member with the name of an amount is marked, unless it is what a business
// says of itself.
func TestAmountsAreMarked(t *testing.T) {
	own := []string{"settings.find", "settings.save", "platformAppBootstrap"}
	var walk func(op string, v reflect.Type, path []reflect.Type)
	walk = func(op string, v reflect.Type, path []reflect.Type) {
		for v.Kind() == reflect.Pointer || v.Kind() == reflect.Slice || v.Kind() == reflect.Map {
			v = v.Elem()
		}
		if v.Kind() != reflect.Struct || slices.Contains(path, v) {
			return
		}
		for i := range v.NumField() {
			f := v.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if slices.Contains(amounts, name) {
				require.Equal(t, "true", f.Tag.Get("price"), "%s: %s of %s", op, name, v)
				continue
			}
			if f.Tag.Get("price") != "true" {
				walk(op, f.Type, append(path, v))
			}
		}
	}
	for _, o := range table().Operations() {
		if !slices.Contains(own, o.Name) {
			walk(o.Name, o.Out(), nil)
		}
	}
}
