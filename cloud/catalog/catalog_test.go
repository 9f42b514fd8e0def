package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
	"github.com/postern-io/postern/cloud/auth"
)

type rate struct {
	ID     string   `json:"rate_id"`
	Name   string   `json:"service_name"`
	Price  float64  `json:"shipping_price" price:"true"`
	Tax    *float64 `json:"tax,omitempty" price:"true"`
	Nested []money  `json:"nested"`
}

type money struct {
	Code   string  `json:"code"`
	Amount float64 `json:"amount" price:"true"`
}

type base struct {
	Note  string  `json:"note,omitempty"`
	Total float64 `json:"total_price" price:"true"`
}

type order struct {
	base
	COD      *float64        `json:"cod_amount"` // a fact about the goods, no price
	Rates    []rate          `json:"rates"`
	ByName   map[string]rate `json:"by_name"`
	Any      any             `json:"any"`
	Ignored  string          `json:"-"`
	private  int
	Currency string `json:"currency" price:"true"`
}

// However deep an amount lies, no trace of it is left where prices are hidden,
// and everything else is as it was.
func TestNoAmountLeaks(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const secret = 987654.25
	one := func() rate {
		tax := secret
		v := rate{ID: "r1", Name: "Ground", Price: secret, Nested: []money{{"base", secret}, {"fuel", secret}}}
		if r.IntN(2) == 0 {
			v.Tax = &tax
		}
		return v
	}
	for range 200 {
		o := order{base: base{Total: secret}, Rates: []rate{one(), one()}, ByName: map[string]rate{"a": one()}, Ignored: "x", private: 1, Currency: "CAD"}
		switch r.IntN(4) {
		case 0:
			o.Any = one()
		case 1:
			v := one()
			o.Any = &v
		case 2:
			o.Any = []rate{one()}
		}
		cod := 12.5
		o.COD = &cod
		open, err := json.Marshal(o)
		require.NoError(t, err)
		closed, err := json.Marshal(Hide(o))
		require.NoError(t, err)
		require.Contains(t, string(open), "987654.25")
		require.NotContains(t, string(closed), "987654.25")
		for _, word := range []string{"shipping_price", "tax", "amount\":", "total_price", "currency", "CAD"} {
			require.NotContains(t, strings.ReplaceAll(string(closed), "cod_amount", ""), word)
		}
		var m map[string]any
		require.NoError(t, json.Unmarshal(closed, &m))
		require.Equal(t, true, m["price_hidden"])
		require.Equal(t, 12.5, m["cod_amount"])
		require.NotContains(t, m, "note")
		require.NotContains(t, m, "Ignored")
		first := m["rates"].([]any)[0].(map[string]any)
		require.Equal(t, "r1", first["rate_id"])
		require.Equal(t, "Ground", first["service_name"])
		require.Equal(t, true, first["price_hidden"])
		require.Equal(t, "fuel", first["nested"].([]any)[1].(map[string]any)["code"])
	}
	type plain struct{ A int }
	require.Equal(t, plain{1}, Hide(plain{1}), "what has no prices is not copied")
	require.Nil(t, Hide(nil))
}

// What is not hidden is shown by the two ways of encoding alike.
func TestHidingChangesNothingElse(t *testing.T) {
	type out struct {
		A     int            `json:"a"`
		B     *string        `json:"b"`
		C     []string       `json:"c"`
		D     map[string]int `json:"d"`
		E     time.Time      `json:"e"`
		F     string         `json:"f,omitempty"`
		Inner struct {
			X float64 `json:"x"`
		} `json:"inner"`
		Raw   json.RawMessage `json:"raw"`
		Price float64         `json:"-" price:"true"`
	}
	v := out{A: 1, D: map[string]int{"k": 2}, E: time.Unix(5, 0).UTC(), Raw: json.RawMessage(`{"k":[1]}`)}
	want, err := json.Marshal(v)
	require.NoError(t, err)
	got, err := json.Marshal(Hide(v))
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(got))
}

type in struct {
	N int `json:"n"`
}

type result struct {
	Result bool    `json:"result"`
	Price  float64 `json:"price" price:"true"`
}

func row(o Operation) Operation {
	if o.Name == "" {
		o.Name = "x.y"
	}
	o.Summary, o.Description, o.Tag, o.Path = "Test", "A test.", "User", "/x"
	if o.Method == "" {
		o.Method = "POST"
	}
	return Define(o, func(_ context.Context, c cloud.Caller, v in) (result, error) {
		if v.N < 0 {
			return result{}, cloud.E(cloud.Invalid, "VALIDATION_FAILED")
		}
		return result{true, 5}, nil
	}, nil)
}

func login(a cloud.Account) func(context.Context, [32]byte) (auth.Session, error) {
	return func(_ context.Context, hash [32]byte) (auth.Session, error) {
		if hash != auth.Hash("good") {
			return auth.Session{}, cloud.ErrNotFound
		}
		return auth.Session{Token: cloud.Token{Hash: hash}, Account: a}, nil
	}
}

func code(err error) string {
	var e *cloud.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Every account type against every rule of an operation, as the order of the
// checks has it.
func TestAdmission(t *testing.T) {
	t.Parallel()
	types := []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee, cloud.Broker, cloud.DriverAccount, cloud.Customer, cloud.ProviderType, cloud.PlatformAdmin}
	o := row(Operation{Types: []cloud.AccountType{cloud.ClientAdmin, cloud.ClientEmployee}, Scopes: []string{"orders:read", "routes:write"}, Gate: "order_chat"})
	for _, typ := range types {
		for _, on := range []bool{true, false} {
			for _, have := range [][]string{nil, {"orders:read"}, {"orders:write", "routes:write"}, {"orders:read", "routes:read"}, {"*"}} {
				p := NewPipeline(Config{FindToken: login(cloud.Account{ID: 1, BusinessID: 42, Type: typ, Enabled: true, Permissions: have}),
					Feature: func(_ context.Context, b cloud.BusinessID, f string) error {
						require.Equal(t, cloud.BusinessID(42), b)
						require.Equal(t, "order_chat", f)
						if !on {
							return cloud.E(cloud.Conflict, "FEATURE_DISABLED")
						}
						return nil
					}})
				_, c, _, err := p.Admit(context.Background(), &o, Who{Authorization: "Bearer good", IP: "192.0.2.1"})
				want := ""
				switch {
				case typ == cloud.PlatformAdmin: // of no business, whose gates are not theirs
					want = "ACCOUNT_TYPE_NOT_ALLOWED"
				case !on:
					want = "FEATURE_DISABLED"
				case typ != cloud.ClientAdmin && typ != cloud.ClientEmployee:
					want = "ACCOUNT_TYPE_NOT_ALLOWED"
				case typ == cloud.ClientEmployee && !reflect.DeepEqual(have, []string{"orders:write", "routes:write"}) && !reflect.DeepEqual(have, []string{"*"}):
					want = "FORBIDDEN"
				}
				require.Equal(t, want, code(err), "%s %v %v", typ, on, have)
				require.Equal(t, typ, c.Account.Type)
			}
		}
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	o := row(Operation{Types: []cloud.AccountType{cloud.ClientAdmin}})
	open := row(Operation{NoTokenCode: "OTEP_CREDENTIALS_REQUIRED"})
	admit := func(p *Pipeline, o *Operation, header string) string {
		_, _, _, err := p.Admit(context.Background(), o, Who{Authorization: header, IP: "192.0.2.1"})
		return code(err)
	}
	p := NewPipeline(Config{FindToken: login(cloud.Account{ID: 1, Type: cloud.ClientAdmin, Enabled: true}), Limits: Limits{Anonymous: -1}})
	require.Equal(t, "", admit(p, &o, "Bearer good"))
	require.Equal(t, "", admit(p, &o, "bearer  good "))
	require.Equal(t, "UNAUTHENTICATED", admit(p, &o, ""))
	for _, bad := range []string{"Bearer", "Bearer other", "Basic good", "good", "Bearer " + strings.Repeat("x", 300)} {
		require.Equal(t, "TOKEN_INVALID", admit(p, &o, bad), bad)
		require.Equal(t, "OTEP_CREDENTIALS_REQUIRED", admit(p, &open, bad), bad)
	}
	require.Equal(t, "", admit(p, &open, ""))
	off := NewPipeline(Config{FindToken: login(cloud.Account{ID: 1, Type: cloud.ClientAdmin})})
	require.Equal(t, "ACCOUNT_DISABLED", admit(off, &o, "Bearer good"))
}

func TestLimitsAreShared(t *testing.T) {
	t.Parallel()
	p := NewPipeline(Config{FindToken: login(cloud.Account{ID: 1, Type: cloud.ClientAdmin, Enabled: true}), Limits: Limits{Authenticated: 4, Anonymous: 2, Replay: 1}})
	o, replay := row(Operation{}), row(Operation{Group: Replay})
	admit := func(o *Operation, header string) bool {
		_, _, st, err := p.Admit(context.Background(), o, Who{Authorization: header, IP: "192.0.2.1"})
		var over *Limited
		require.Equal(t, st.OK, !errors.As(err, &over))
		return st.OK
	}
	require.True(t, admit(&o, ""))
	require.True(t, admit(&o, ""))
	require.False(t, admit(&o, ""), "by address")
	require.True(t, admit(&replay, "Bearer good"))
	require.False(t, admit(&replay, "Bearer good"), "one replay")
	require.True(t, admit(&o, "Bearer good"))
	require.True(t, admit(&o, "Bearer good"))
	require.False(t, admit(&o, "Bearer good"), "by token, replays counted")
}

func TestRunHidesPrices(t *testing.T) {
	t.Parallel()
	o := row(Operation{})
	hide := false
	p := NewPipeline(Config{Hidden: func(context.Context, cloud.Caller, *Operation) (bool, error) { return hide, nil }})
	bind := func(v any) error { v.(*in).N = 1; return nil }
	a, err := p.Run(context.Background(), &o, cloud.Caller{}, Key{}, bind)
	require.NoError(t, err)
	require.Equal(t, result{true, 5}, a.Body)
	hide = true
	a, err = p.Run(context.Background(), &o, cloud.Caller{}, Key{}, bind)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"result": true, "price_hidden": true}, a.Body)
	_, err = p.Run(context.Background(), &o, cloud.Caller{}, Key{}, func(v any) error { v.(*in).N = -1; return nil })
	require.Equal(t, "VALIDATION_FAILED", code(err))
}

func TestATableThatContradictsItselfDoesNotStart(t *testing.T) {
	t.Parallel()
	bad := func(o ...Operation) {
		t.Helper()
		require.Panics(t, func() { New(o) })
	}
	good := row(Operation{Name: "a.b"})
	require.NotPanics(t, func() { New([]Operation{good}) })
	bad(good, good)
	bad(Operation{Name: "not.defined"})
	nameless := good
	nameless.Summary = ""
	bad(nameless)
	silent := good
	silent.Description = ""
	bad(silent)
	for _, example := range []string{"no JSON", `{"n":"one"}`, `{"m":1}`, `[]`} {
		strange := good
		strange.Example = example
		bad(strange)
	}
	one := func(o Operation) Operation {
		return Define(o, func(context.Context, cloud.Caller, struct {
			ID int64 `path:"id"`
		}) (result, error) {
			return result{}, nil
		}, nil)
	}
	o := Operation{Name: "i.j", Summary: "Test", Description: "A test.", Tag: "User", Method: "GET", Path: "/x/{id}"}
	bad(one(o)) // no client could call it as the example says
	o.Example = `{"id":7}`
	require.NotPanics(t, func() { New([]Operation{one(o)}) })
	worked := one(o)
	require.Equal(t, map[string]any{"id": json.Number("7")}, worked.WorkedInput())
	require.Nil(t, worked.Worked())
	// The example of a body that is taken as it came is that body and says nothing of other members.
	taken := func(example string) Operation {
		return Define(Operation{Name: "k.l", Summary: "Test", Description: "A test.", Tag: "User", Method: "POST", Path: "/x/{id}", Example: example}, func(context.Context, cloud.Caller, struct {
			ID   int64  `path:"id"`
			Body []byte `body:"raw"`
		}) (result, error) {
			return result{}, nil
		}, nil)
	}
	bad(taken(""))
	bad(taken("no JSON"))
	require.NotPanics(t, func() { New([]Operation{taken(`{"any":1}`)}) })
	bad(row(Operation{Name: "e.f", Idempotent: true}))
	bad(row(Operation{Name: "g.h", Method: "GET", Idempotent: true, Types: []cloud.AccountType{cloud.ClientAdmin}}))
	strange := row(Operation{Name: "c.d", Scopes: []string{"everything:all"}})
	bad(strange)
	require.Panics(t, func() {
		Define(Operation{Name: "n"}, func(context.Context, cloud.Caller, int) (int, error) { return 0, nil }, nil)
	})
	require.Nil(t, New([]Operation{good}).Find("unknown"))
	require.Equal(t, "a.b", New([]Operation{good}).Find("a.b").Name)
}

// A line of a table of arguments is a name, a kind and perhaps bounds; anything else does not start.
func TestArguments(t *testing.T) {
	t.Parallel()
	least, most := 1.0, 50.0
	require.Equal(t, []Argument{
		{Name: "query", Kind: "text", Required: true, Doc: "Words to look for"},
		{Name: "limit", Kind: "integer", Least: &least, Most: &most},
		{Name: "from", Kind: "number", Least: &least},
		{Name: "order", Kind: "text", Enum: []string{"asc", "desc"}},
		{Name: "state", Kind: "integer", Enum: []string{"1", "2"}, List: true},
	}, Arguments(`
		query! text · Words to look for
		limit integer 1..50
		from number 1..
	`, `
		order asc|desc
		state list 1|2
	`))
	for _, line := range []string{"name", "name word", "name integer 1-5", "name integer 1..five", "name integer 1..5 6", "name list integer 1..5 6"} {
		require.Panics(t, func() { Arguments(line) }, line)
	}
}

// Bytes fill the member that takes a file; a text of that name, as tools could
// give one, does not.
func TestValuesWithAFile(t *testing.T) {
	t.Parallel()
	type upload struct {
		File []byte `body:"file"`
		Name string `json:"name"`
	}
	o := Define(Operation{Name: "x.y", Summary: "Test", Tag: "User", Method: "POST", Path: "/x"}, func(context.Context, cloud.Caller, upload) (result, error) { return result{}, nil }, nil)
	var got upload
	require.NoError(t, o.Values(map[string]any{"file": []byte("bytes"), "name": "door.png"})(&got))
	require.Equal(t, upload{[]byte("bytes"), "door.png"}, got)
	got = upload{}
	require.Equal(t, "VALIDATION_FAILED", code(o.Values(map[string]any{"file": "bytes"})(&got)))
	require.Empty(t, got.File)
}
