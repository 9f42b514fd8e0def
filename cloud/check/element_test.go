package check

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/postern-io/postern/cloud"
)

type point struct {
	Latitude  *float64 `json:"latitude" min:"-90" max:"90" with:"longitude"`
	Longitude *float64 `json:"longitude" min:"-180" max:"180" with:"latitude"`
}

type parcel struct {
	Name     string            `json:"name" required:"true"`
	Fee      *cloud.Money      `json:"fee" min:"0" max:"100000"`
	Age      int               `json:"age" enum:"18,19,21"`
	Days     []int             `json:"days" min:"1" max:"7" item_min:"1" item_max:"7" unique:"true"`
	Metadata map[string]string `json:"metadata" max:"2" key_max:"4" item_max:"3"`
	Prices   map[string]int    `json:"prices" key_enum:"base,fuel" item_min:"0"`
	Lists    [][]string        `json:"lists"`
	Points   []point           `json:"points"`
	Rows     []point           `json:"rows" rows:"true" max:"2"`
	Zone     string            `json:"zone" format:"time-zone"`
	Clock    string            `json:"clock" format:"time"`
	Country  string            `json:"country" format:"country"`
	Money    string            `json:"money" format:"currency"`
	Color    string            `json:"color" format:"color"`
	Version  string            `json:"version" format:"version"`
}

func TestElementsKeysAndFormats(t *testing.T) {
	t.Parallel()
	at := func(x float64) *float64 { return &x }
	fee := func(m cloud.Money) *cloud.Money { return &m }
	for name, c := range map[string]struct {
		change        func(in *parcel)
		path, message string // "" when all is well
	}{
		"a blank name":              {func(in *parcel) { in.Name = " \t" }, "name", "name is required."},
		"an amount in whole units":  {func(in *parcel) { in.Fee = fee(10_000_000) }, "", ""},
		"a cent too much":           {func(in *parcel) { in.Fee = fee(10_000_001) }, "fee", "fee must be from 0 to 100000."},
		"an amount below":           {func(in *parcel) { in.Fee = fee(-1) }, "fee", "fee must be from 0 to 100000."},
		"an age":                    {func(in *parcel) { in.Age = 19 }, "", ""},
		"another age":               {func(in *parcel) { in.Age = 20 }, "age", "age must be one of 18, 19, 21."},
		"a day that is none":        {func(in *parcel) { in.Days = []int{1, 8} }, "days.1", "days[1] must be from 1 to 7."},
		"day 0":                     {func(in *parcel) { in.Days = []int{0} }, "days.0", "days[0] must be from 1 to 7."},
		"a day twice":               {func(in *parcel) { in.Days = []int{3, 3} }, "days.1", "days[1] is in the list twice."},
		"metadata":                  {func(in *parcel) { in.Metadata = map[string]string{"a": "", "abcd": "abc"} }, "", ""},
		"too much metadata":         {func(in *parcel) { in.Metadata = map[string]string{"a": "", "b": "", "c": ""} }, "metadata", "metadata must have at most 2 elements; it has 3."},
		"a long key":                {func(in *parcel) { in.Metadata = map[string]string{"abcde": ""} }, "metadata", "metadata must have keys of 1 to 4 characters."},
		"keys of no characters":     {func(in *parcel) { in.Metadata = map[string]string{"": "", "abcde": ""} }, "metadata", "metadata must have keys of 1 to 4 characters."},
		"a key that is no text":     {func(in *parcel) { in.Metadata = map[string]string{"\xff": ""} }, "metadata", "metadata must have keys of 1 to 4 characters."},
		"a long value":              {func(in *parcel) { in.Metadata = map[string]string{"a": "abcd"} }, "metadata.a", "metadata.a must have at most 3 characters; it has 4."},
		"a price":                   {func(in *parcel) { in.Prices = map[string]int{"fuel": 0} }, "", ""},
		"a price of another kind":   {func(in *parcel) { in.Prices = map[string]int{"air": 1} }, "prices", "prices must have no keys but base, fuel."},
		"a price below":             {func(in *parcel) { in.Prices = map[string]int{"fuel": -1} }, "prices.fuel", "prices.fuel must be at least 0."},
		"lists in lists":            {func(in *parcel) { in.Lists = [][]string{{"a"}, nil} }, "", ""},
		"nowhere":                   {func(in *parcel) { in.Points = []point{{}} }, "", ""},
		"the corner of the world":   {func(in *parcel) { in.Points = []point{{at(-90), at(180)}} }, "", ""},
		"beyond it":                 {func(in *parcel) { in.Points = []point{{}, {at(90.1), at(0)}} }, "points.1.latitude", "points[1].latitude must be from -90 to 90."},
		"half a place":              {func(in *parcel) { in.Points = []point{{nil, at(1)}} }, "points.0.latitude", "points[0].latitude must come together with longitude."},
		"the other half":            {func(in *parcel) { in.Points = []point{{at(1), nil}} }, "points.0.longitude", "points[0].longitude must come together with latitude."},
		"a place that is no number": {func(in *parcel) { in.Points = []point{{at(math.NaN()), at(1)}} }, "points.0.latitude", "points[0].latitude must be from -90 to 90."},
		"rows are checked later":    {func(in *parcel) { in.Rows = []point{{nil, at(1)}} }, "", ""},
		"but counted":               {func(in *parcel) { in.Rows = make([]point, 3) }, "rows", "rows must have at most 2 elements; it has 3."},
		"a zone":                    {func(in *parcel) { in.Zone = "America/Toronto" }, "", ""},
		"no zone":                   {func(in *parcel) { in.Zone = "Local" }, "zone", "zone must look like America/Toronto."},
		"a way out of the database": {func(in *parcel) { in.Zone = "../../etc/passwd" }, "zone", "zone must look like America/Toronto."},
		"a time":                    {func(in *parcel) { in.Clock = "23:59" }, "", ""},
		"a time of one digit":       {func(in *parcel) { in.Clock = "9:30" }, "clock", "clock must look like 18:12."},
		"midnight at the end":       {func(in *parcel) { in.Clock = "24:00" }, "clock", "clock must look like 18:12."},
		"a country":                 {func(in *parcel) { in.Country = "ca" }, "", ""},
		"no country":                {func(in *parcel) { in.Country = "CAN" }, "country", "country must be a country code of two letters that ISO 3166-1 assigns, such as CA, DE or US."},
		"a code of no country":      {func(in *parcel) { in.Country = "XX" }, "country", "country must be a country code of two letters that ISO 3166-1 assigns, such as CA, DE or US."},
		"an empty country":          {func(in *parcel) { in.Country = "" }, "", ""},
		"no currency":               {func(in *parcel) { in.Money = "$" }, "money", "money must look like CAD."},
		"no color":                  {func(in *parcel) { in.Color = "red" }, "color", "color must look like #0B5FFF."},
		"a version":                 {func(in *parcel) { in.Version = "2.4.0-beta.1" }, "", ""},
		"no version":                {func(in *parcel) { in.Version = "v2" }, "version", "version must look like 2.4.0."},
	} {
		in := parcel{Name: "x"}
		c.change(&in)
		err := Input(&in)
		if c.path == "" {
			require.NoError(t, err, name)
			continue
		}
		var e *cloud.Error
		require.True(t, errors.As(err, &e), name)
		require.Equal(t, map[string][]string{c.path: {c.message}}, e.Fields, name)
	}
}

// Whatever has a format is what its example shows.
func TestExamplesHaveTheirFormat(t *testing.T) {
	t.Parallel()
	for _, name := range Formats() {
		require.True(t, HasFormat(name, formats[name].example), name)
		for _, bad := range []string{" ", "\n", strings.Repeat("0", 99)} {
			require.False(t, HasFormat(name, bad), "%s: %q", name, bad)
		}
	}
}

// Codes that users may assign, reserved and withdrawn ones are no countries; Kosovo is.
func TestCountriesThatAreTaken(t *testing.T) {
	t.Parallel()
	for _, code := range strings.Fields("CA de Us XK AX GB TW UM ZW") {
		require.True(t, HasFormat("country", code), code)
	}
	for _, code := range strings.Fields("AA QM QZ XA XX XZ ZZ EU UK SU YU AN AC TA CAN C Ça 12") {
		require.False(t, HasFormat("country", code), code)
	}
	require.Len(t, cloud.Countries(), 250)
	require.True(t, slices.IsSorted(cloud.Countries()))
}

func TestPages(t *testing.T) {
	t.Parallel()
	number := func(n int) *int { return &n }
	for name, c := range map[string]struct {
		page, perPage *int
		want          [3]int // page, per_page, offset; zero: refused
		message       string
	}{
		"nothing given": {nil, nil, [3]int{1, 20, 0}, ""},
		"a page":        {number(3), number(200), [3]int{3, 200, 400}, ""},
		"page 0":        {number(0), nil, [3]int{}, "page must be from 1 to 10000000."},
		"no rows":       {nil, number(0), [3]int{}, "per_page must be from 1 to 200."},
		"201 rows":      {nil, number(201), [3]int{}, "per_page must be from 1 to 200."},
	} {
		in := struct{ Keyset }{Keyset{Page: c.page, PerPage: c.perPage}}
		err := Input(&in)
		if c.message != "" {
			require.ErrorContains(t, err, Code, name)
			var e *cloud.Error
			require.True(t, errors.As(err, &e))
			require.Contains(t, [][]string{e.Fields["page"], e.Fields["per_page"]}, []string{c.message}, name)
			continue
		}
		require.NoError(t, err, name)
		p, err := in.Part(in, "id")
		require.NoError(t, err, name)
		require.Equal(t, c.want, [3]int{*in.Page, p.Limit, p.Offset}, name)
	}
	p, err := Keyset{}.Part(struct{}{}, "id")
	require.NoError(t, err)
	require.Equal(t, cloud.Page{Sort: "id", Limit: 20}, p, "without a check")
}
