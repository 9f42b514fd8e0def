package check

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTypePath(t *testing.T) {
	t.Parallel()
	type pkg struct {
		Weight float64           `json:"weight"`
		Tags   []string          `json:"tags"`
		Extra  map[string]int    `json:"extra"`
		Inner  *struct{ A bool } `json:"inner"`
	}
	var in struct {
		Name     string `json:"name"`
		Packages []pkg  `json:"packages"`
	}
	for body, want := range map[string]string{
		`{"name":5}`:                                              "name",
		`{"name" : [ 5 ] }`:                                       "name",
		`{"name":{"a":1}}`:                                        "name",
		`{"packages":{}}`:                                         "packages",
		`{"packages":[{"weight":"x"}]}`:                           "packages.0.weight",
		`{"packages":[{},{"weight":[]}]}`:                         "packages.1.weight",
		`{"packages":[{}, {"tags":["a", {} ]}]}`:                  "packages.1.tags.1",
		`{"packages":[{"extra":{"one":1,"two":"2"}}]}`:            "packages.0.extra.two",
		`{"packages":[{"weight":1,"inner":{"A" : "yes"}},5]}`:     "packages.0.inner.A",
		`{"packages":[{"weight":1},  5]}`:                         "packages.1",
		`{"name":"a","other":[[1,[2]],{"b":[3]}],"packages":"x"}`: "packages",
		`[1]`: "body",
		`"x"`: "body",
	} {
		var wrong *json.UnmarshalTypeError
		require.True(t, errors.As(json.Unmarshal([]byte(body), &in), &wrong), body)
		require.Equal(t, want, TypePath([]byte(body), wrong.Offset), body)
	}
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
	f.Add([]byte(`{"a":[{"b":"\u0000"}]}`), int64(5))
	f.Fuzz(func(t *testing.T, body []byte, offset int64) {
		if json.Valid(body) {
			BadText(body)
			require.NotEmpty(t, TypePath(body, offset))
		}
	})
}
