package locale

import (
	"math"
	"strconv"
	"strings"
)

// separators are the characters between thousands and before a fraction, by language;
// others have those of English.
var separators = map[string][2]string{"fr": {"\u202f", ","}, "de": {".", ","}, "es": {".", ","}}

// Number writes a number as a language does, with two digits behind the point at most.
func Number(lang string, v float64) string {
	marks, ok := separators[lang]
	if !ok {
		marks = [2]string{",", "."}
	}
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(math.Round(math.Abs(v)*100)/100, 'f', -1, 64), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + marks[0] + whole[i:]
	}
	if fraction != "" {
		whole += marks[1] + fraction
	}
	if v < 0 {
		return "-" + whole
	}
	return whole
}
