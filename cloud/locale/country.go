package locale

import (
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
)

// Region is a country or territory of ISO 3166-1 with its name in one language.
type Region struct{ Code, Name string }

// regions are the countries by language, sorted by name as that language sorts.
var regions = func() (out [len(languages)]func() []Region) {
	for i, lang := range languages {
		out[i] = sync.OnceValue(func() []Region { return namedRegions(lang) })
	}
	return out
}()

// Countries lists the countries and territories of ISO 3166-1, and Kosovo under the
// code XK that posts and carriers use, in a language. The list is shared: it must
// not be changed.
func Countries(lang string) []Region { return regions[index(lang)]() }

// Country is the name of a country in a language, and the code itself for one that
// is not known. Small letters name the same country.
func Country(lang, code string) string {
	upper, list := strings.ToUpper(code), Countries(lang)
	if i := slices.IndexFunc(list, func(r Region) bool { return r.Code == upper }); i >= 0 {
		return list[i].Name
	}
	return code
}

// namedRegions tries every code of two letters: those that name a country of today
// stay. Codes that users may assign, withdrawn ones and groups of countries go.
func namedRegions(lang string) []Region {
	tag := language.MustParse(lang)
	names := display.Regions(tag)
	var out []Region
	for a := 'A'; a <= 'Z'; a++ {
		for b := 'A'; b <= 'Z'; b++ {
			code := string([]rune{a, b})
			r, err := language.ParseRegion(code)
			if err != nil || !r.IsCountry() || r.Canonicalize() != r || r.String() != code || notAssigned[code] {
				continue
			}
			name := names.Name(r)
			if fresh, ok := renamed[code]; ok {
				name = fresh[index(lang)]
			}
			if name != "" {
				out = append(out, Region{code, name})
			}
		}
	}
	order := collate.New(tag)
	slices.SortFunc(out, func(x, y Region) int { return order.CompareString(x.Name, y.Name) })
	return out
}

// notAssigned are codes that the CLDR names and that are no country of ISO 3166-1.
var notAssigned = map[string]bool{"AC": true, "CP": true, "CQ": true, "DG": true, "EA": true, "EU": true, "EZ": true, "IC": true, "QO": true, "TA": true, "UN": true, "ZZ": true}

// renamed are countries that took another name after the CLDR of x/text was made.
var renamed = map[string]texts{
	"MK": {"North Macedonia", "北马其顿", "北馬其頓", "Macédoine du Nord", "Nordmazedonien", "Macedonia del Norte"},
	"SZ": {"Eswatini", "斯威士兰", "史瓦帝尼", "Eswatini", "Eswatini", "Esuatini"},
}
