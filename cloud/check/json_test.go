package check

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

func TestWrongTypeNamesValueAndType(t *testing.T) {
	t.Parallel()
	type embedded struct {
		Note *string `json:"note"`
	}
	type pkg struct {
		Weight float64           `json:"weight"`
		Tags   []string          `json:"tags"`
		Extra  map[string]int    `json:"extra"`
		Inner  *struct{ A bool } `json:"inner"`
		Price  *cloud.Money      `json:"price"`
		Asked  time.Time         `json:"asked"`
	}
	var in struct {
		embedded
		Name     string          `json:"name"`
		Packages []pkg           `json:"packages"`
		Any      json.RawMessage `json:"any"`
		Path     int64           `path:"id"`
	}
	for body, want := range map[string]string{
		`{"name":5}`:                                              "name: name must be a text.",
		`{"NAME":{"a":1}}`:                                        "NAME: NAME must be a text.",
		`{"note":[]}`:                                             "note: note must be a text.",
		`{"packages":{}}`:                                         "packages: packages must be a list.",
		`{"packages":[{"weight":"x"}]}`:                           "packages.0.weight: packages[0].weight must be a number.",
		`{"packages":[{"weight":1e400}]}`:                         "packages.0.weight: packages[0].weight must be a number.",
		`{"packages":[{}, {"tags":["a", {} ]}]}`:                  "packages.1.tags.1: packages[1].tags[1] must be a text.",
		`{"packages":[{"tags":["a", null ]}]}`:                    "packages.0.tags.1: packages[0].tags[1] must be a text.",
		`{"packages":[null]}`:                                     "packages.0: packages[0] must be an object.",
		`{"packages":[{"extra":{"one":1,"two":"2"}}]}`:            "packages.0.extra.two: packages[0].extra.two must be a whole number of at most 18 digits.",
		`{"packages":[{"weight":1,"inner":{"A" : "yes"}},5]}`:     "packages.0.inner.A: packages[0].inner.A must be true or false.",
		`{"packages":[{"price":"5"}]}`:                            "packages.0.price: packages[0].price must be an amount of at most 1000000000000.",
		`{"packages":[{"price":1e13}]}`:                           "packages.0.price: packages[0].price must be an amount of at most 1000000000000.",
		`{"packages":[{"asked":"noon"}]}`:                         "packages.0.asked: packages[0].asked must be a date and time with offset, such as 2026-06-10T11:30:00-04:00.",
		`{"name":"a","other":[[1,[2]],{"b":[3]}],"packages":"x"}`: "packages: packages must be a list.",
		`{"packages":[{"weight":null,"tags":null,"price":null}],"any":[null],"note":null,"name":"a","more":null}`: "",
	} {
		got := ""
		var e *cloud.Error
		if errors.As(WrongType([]byte(body), &in), &e) {
			for path, messages := range e.Fields {
				got += path + ": " + strings.Join(messages, " ")
			}
		} else {
			require.NoError(t, json.Unmarshal([]byte(body), &in), body)
		}
		require.Equal(t, want, got, body)
	}
}

// A sentence that names no member is shown as it is.
func TestSayTakesSentencesWithoutPlaces(t *testing.T) {
	t.Parallel()
	f := Fields{}
	f.Say("noun", "There is no such kind of record.")
	f.Say("noun", MessageRequired)
	require.Equal(t, Fields{"noun": {"There is no such kind of record.", "noun is required."}}, f)
}

func TestBadText(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"a":"x\u0000y"}`:                               "a " + MessageZero,
		`{"a":[{"b":"\u0000"}]}`:                         "a.0.b " + MessageZero,
		`{"a":{"x\u0000":1}}`:                            "a " + MessageZero,
		`{"\u0000":1}`:                                   "body " + MessageZero,
		`{"a":"\ud83d","b":"\u0000"}`:                    "a " + MessageUTF8,
		`{"a":"\ud83d\ufffd"}`:                           "a " + MessageUTF8,
		`{"a":"\\ufffd\udc00"}`:                          "a " + MessageUTF8,
		`{"a":"\ufffd","b":"\uFFFD","c":"\ud83d\ude00"}`: "",
		`{"a":"` + "\uFFFD" + `","b":"\\u0000"}`:         "",
		`{"a":[1,null,true,"x",{}],"b":2}`:               "",
	} {
		path, message, found := BadText([]byte(body))
		got := ""
		if found {
			got = path + " " + message
		}
		require.Equal(t, want, got, body)
	}
	for body, want := range map[string]string{
		`{"rows":[{"b":"\u0000"},"\u0000"]}`:          "",
		`{"rows":[{"b":"\u0000"}],"c":"\u0000"}`:      "c",
		`{"rowss":["\u0000"],"rows":[]}`:              "rowss.0",
		`{"rows":"\u0000"}`:                           "rows",
		`{"a":{"rows":["\u0000"]},"rows":["\u0000"]}`: "a.rows.0",
	} {
		path, _, _ := BadText([]byte(body), "rows")
		require.Equal(t, want, path, body)
	}
}

func FuzzBadText(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":"\u0000"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var in struct {
			A []struct{ B *string }
			M map[string]cloud.Money
		}
		if json.Valid(body) {
			BadText(body)
			if WrongType(body, &in) == nil && body[0] == '{' {
				require.NoError(t, json.Unmarshal(body, &in))
			}
		}
	})
}
