package locale

import (
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"github.com/postern-io/postern/cloud"
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

// Countries lists cloud.Countries in a language. The list is shared: it must not be
// changed.
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

// CountryCode is the code of a country that is named in a language, in English or by a code of
// ISO 3166-1, of two letters, three letters or three digits; the text itself for one that is not
// known.
func CountryCode(lang, name string) string { return countryNamed(name, lang, English) }

// CountryIn is CountryCode of a name in any language.
func CountryIn(name string) string { return countryNamed(name, languages[:]...) }

func countryNamed(name string, langs ...string) string {
	for _, l := range langs {
		for _, r := range Countries(l) {
			if strings.EqualFold(r.Name, name) || strings.EqualFold(r.Code, name) {
				return r.Code
			}
		}
	}
	if r, err := language.ParseRegion(name); err == nil && cloud.IsCountry(r.Canonicalize().String()) {
		return r.Canonicalize().String()
	}
	return name
}

// namedRegions are all countries by their names in a language.
func namedRegions(lang string) []Region {
	tag := language.MustParse(lang)
	names := display.Regions(tag)
	codes := cloud.Countries()
	out := make([]Region, len(codes))
	for i, code := range codes {
		out[i] = Region{code, names.Name(language.MustParseRegion(code))}
		if fresh, ok := renamed[code]; ok {
			out[i].Name = fresh[index(lang)]
		}
	}
	order := collate.New(tag)
	slices.SortFunc(out, func(x, y Region) int { return order.CompareString(x.Name, y.Name) })
	return out
}

// renamed are countries that took another name after the CLDR of x/text was made.
var renamed = map[string]texts{
	"MK": {"North Macedonia", "北马其顿", "北馬其頓", "Macédoine du Nord", "Nordmazedonien", "Macedonia del Norte"},
	"SZ": {"Eswatini", "斯威士兰", "史瓦帝尼", "Eswatini", "Eswatini", "Esuatini"},
}
