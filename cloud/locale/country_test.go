package locale

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A country is known by its name in the reader's language and in English, and by its code.
func TestCountriesByName(t *testing.T) {
	for name, want := range map[string]string{"España": "ES", "spain": "ES", "es": "ES", "Alemania": "DE", "Nowhere": "Nowhere"} {
		require.Equal(t, want, CountryCode("es", name), name)
	}
	require.Equal(t, "DE", CountryCode("zh-Hans", "德国"))
	for name, want := range map[string]string{"España": "ES", "Allemagne": "DE", "德国": "DE", "usa": "US", "GBR": "GB", "276": "DE", "UK": "GB", "xk": "XK", "Nowhere": "Nowhere", "EU": "EU", "840 ": "840 ", "": ""} {
		require.Equal(t, want, CountryIn(name), name)
	}
	for _, r := range Countries(English) { // none is hidden by another's name in some language
		for _, l := range All() {
			require.Equal(t, r.Code, CountryIn(Country(l.Code, r.Code)), "%s in %s", r.Code, l.Code)
		}
	}
}

// ISO 3166-1 assigns 249 codes; Kosovo's is used by posts and carriers.
func TestCountriesAreThoseOfISO3166(t *testing.T) {
	for _, l := range All() {
		list := Countries(l.Code)
		require.Len(t, list, 250, l.Code)
		seen := map[string]bool{}
		for _, r := range list {
			require.False(t, seen[r.Name], "two countries are %q", r.Name)
			require.NotEqual(t, r.Code, r.Name)
			seen[r.Name] = true
		}
	}
	codes := make([]string, 0, 250)
	for _, r := range Countries("en") {
		codes = append(codes, r.Code)
	}
	slices.Sort(codes)
	for _, code := range strings.Fields("AX BQ CA CW GB GG HK PS SS SX TL TW UM XK ZW") {
		require.Contains(t, codes, code)
	}
	for _, code := range strings.Fields("AN CS DD EU EZ FX SU TP UK UN XA YU ZR ZZ") {
		require.NotContains(t, codes, code)
	}
}

func TestACountryHasItsNameInEachLanguage(t *testing.T) {
	require.Equal(t, "Germany", Country("en", "DE"))
	require.Equal(t, "Deutschland", Country("de", "de"))
	require.Equal(t, "北馬其頓", Country("zh-Hant", "MK"))
	require.Equal(t, "QX", Country("fr", "QX"))
	require.Equal(t, "Germany", Country("tlh", "DE"))
	first := func(lang string) string { return Countries(lang)[0].Name }
	require.Equal(t, "Afghanistan", first("en"))
	for _, lang := range []string{"fr", "de", "es"} { // É stands beside E, Ö beside O
		list := Countries(lang)
		at := slices.IndexFunc(list, func(r Region) bool { return r.Code == "EE" })
		require.Less(t, at, 90, "Estonia in %s", lang)
	}
}
