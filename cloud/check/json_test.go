package check

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
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
		`{"packages":[{"weight":1,"inner":{"A" : "yes"}},5]}`:     "packages.0.inner.A: packages[0].inner.A must be true or false. packages.1: packages[1] must be an object.",
		`{"packages":[{"price":"5"}]}`:                            "packages.0.price: packages[0].price must be an amount of at most 1000000000000.",
		`{"packages":[{"price":1e13}]}`:                           "packages.0.price: packages[0].price must be an amount of at most 1000000000000.",
		`{"packages":[{"asked":"noon"}]}`:                         "packages.0.asked: packages[0].asked must be a date and time with offset, such as 2026-06-10T11:30:00-04:00.",
		`{"name":"a","other":[[1,[2]],{"b":[3]}],"packages":"x"}`: "packages: packages must be a list.",
		`{"packages":[{"weight":null,"tags":null,"price":null}],"any":[null],"note":null,"name":"a","more":null}`: "",
	} {
		got := ""
		var e *cloud.Error
		if errors.As(WrongType([]byte(body), &in), &e) {
			for _, path := range slices.Sorted(maps.Keys(e.Fields)) {
				got = strings.TrimSpace(got + " " + path + ": " + strings.Join(e.Fields[path], " "))
			}
		} else {
			require.NoError(t, json.Unmarshal([]byte(body), &in), body)
		}
		require.Equal(t, want, got, body)
	}
}

// A required number that was given as 0 is not missing: the message says what is allowed.
func TestAGivenZeroIsNotMissing(t *testing.T) {
	t.Parallel()
	type part struct {
		Weight float64 `json:"weight" required:"true" above:"0"`
		Kind   int     `json:"kind" required:"true" enum:"1,2"`
	}
	type asked struct {
		Hours int    `json:"hours" required:"true" min:"1" max:"168"`
		Days  *int   `json:"days" required:"true" min:"0"`
		Name  string `json:"name" required:"true"`
		Free  int    `json:"free" min:"1"`
		Parts []part `json:"parts"`
	}
	for body, want := range map[string]string{
		`{"days":0,"name":"a"}`:                    "hours: hours is required.",
		`{"hours":null,"days":0,"name":"a"}`:       "hours: hours is required.",
		`{"hours":0,"days":0,"name":"a"}`:          "hours: hours must be from 1 to 168.",
		`{"HOURS": -0 ,"days":0,"name":"a"}`:       "HOURS: HOURS must be from 1 to 168.",
		`{"hours":0}`:                              "days: days is required. hours: hours must be from 1 to 168. name: name is required.",
		`{"hours":0,"days":"x"}`:                   "days: days must be a whole number of at most 18 digits. hours: hours must be from 1 to 168. name: name is required.",
		`{"hours":1,"days":0,"name":"a","free":0}`: "",
		`{"hours":1,"days":0,"name":"a","parts":[{"weight":0.0,"kind":1},{"weight":1,"kind":0},{"weight":1}]}`: "parts.0.weight: parts[0].weight must be above 0. parts.1.kind: parts[1].kind must be one of 1, 2. parts.2.kind: parts[2].kind is required.",
	} {
		var in asked
		err := json.Unmarshal([]byte(body), &in)
		if wrong := WrongType([]byte(body), &in); wrong != nil {
			err = Beside(wrong, &in)
		} else if err == nil {
			err = Input(&in)
		}
		got := ""
		var e *cloud.Error
		if errors.As(err, &e) {
			for _, path := range slices.Sorted(maps.Keys(e.Fields)) {
				got = strings.TrimSpace(got + " " + path + ": " + strings.Join(e.Fields[path], " "))
			}
		}
		require.Equal(t, want, got, body)
	}
}

// readRow is an element that is checked by itself.
type readRow struct {
	Weight float64 `json:"weight" required:"true" above:"0"`
}

func (*readRow) UnmarshalJSON([]byte) error { return nil }

// Rows that read themselves refuse no call, whatever else makes it looked at: each is checked by itself.
func TestRowsThatReadThemselvesRefuseNoCall(t *testing.T) {
	t.Parallel()
	var in struct {
		Rows  []readRow `json:"rows" rows:"true"`
		Other *int      `json:"other"`
	}
	for _, body := range []string{`{"rows":[{"weight":"x"},{"weight":0},null,5],"other":null}`, `{"rows":[{"weight":"x"}],"other":0}`} {
		require.NoError(t, WrongType([]byte(body), &in), body)
	}
	require.Error(t, WrongType([]byte(`{"rows":{}}`), &in), "it is a list")
}

// Beside values of another type, the others are held to their rules; not those in what was
// not read, nor what holds it.
func TestBesideWrongTypesOthersAreChecked(t *testing.T) {
	t.Parallel()
	type inner struct {
		Weight float64 `json:"weight" above:"0"`
		Name   string  `json:"name" required:"true"`
	}
	var in struct {
		Packages []inner `json:"packages" min:"1"`
		Other    inner   `json:"other"`
		Third    inner   `json:"third"`
		Note     string  `json:"note" max:"3"`
	}
	body := []byte(`{"packages":[{"weight":"heavy"}],"other":7,"third":{"weight":-1,"name":"n"},"note":"long"}`)
	require.Error(t, json.Unmarshal(body, &in))
	var e *cloud.Error
	require.ErrorAs(t, Beside(WrongType(body, &in), &in), &e)
	require.Equal(t, []string{"note", "other", "packages.0.name", "packages.0.weight", "third.weight"}, slices.Sorted(maps.Keys(e.Fields)))
	require.NoError(t, Beside(nil, &in))
	require.ErrorAs(t, Beside(WrongType([]byte(`5`), &in), &in), &e)
	require.Equal(t, Fields{"body": {"body must be an object."}}, Fields(e.Fields))
	broken := errors.New("the disk is gone")
	require.ErrorIs(t, Beside(broken, &in), broken)
}

// An error names so many values of another type and no more.
func TestWrongTypesEnd(t *testing.T) {
	t.Parallel()
	var in struct {
		List []int `json:"list"`
	}
	var e *cloud.Error
	require.ErrorAs(t, WrongType([]byte(`{"list":[`+strings.Repeat(`"x",`, 99)+`"x"]}`), &in), &e)
	require.Len(t, e.Fields, maxWrong)
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

// Telephone numbers are taken as people write them.
func TestPhones(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"+14165550123", "(416) 555-0123", "+49 (0)30 1234-56", "13800138000", "0086-10-12345678", "416.555.0123 x12", "416 555 0123 ext. 7", "+1 416 555 0123, 44", "+1-416-555-0123;ext=9", "911"} {
		require.True(t, HasFormat("phone", good), good)
	}
	for _, bad := range []string{"12", "nope", "???", "call me", "+", "416 555 0123 ask for Ann", "４１６５５５"} {
		require.False(t, HasFormat("phone", bad), bad)
	}
}

// A 0 is a number of its own, not a digit of another one.
func TestHasZero(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{`0`: true, `{"n":0}`: true, `{"n":-0}`: true, `{"n":0.0}`: true, `[1,0,1]`: true, `[1,0`: true,
		``: false, `{"n":1}`: false, `{"n":10}`: false, `[1,10]`: false, `10`: false, `01`: false, `{"n":101}`: false, `{"n":905}`: false} {
		require.Equal(t, want, HasZero([]byte(body)), body)
	}
}
