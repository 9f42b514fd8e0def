// Package spelling finds the name that a misspelled one may have meant.
package spelling

// longest is from how many bytes on a name is not compared.
const longest = 64

// Nearest is the name among some that is closest to one that is not among them: the fewest
// bytes put in, taken out or changed, and at most half of the name's own and six. It is "" when
// none is that close. Of several the first counts.
func Nearest(name string, among []string) string {
	best, least := "", min(len(name)/2, 6)+1
	for _, a := range among {
		if d := distance(name, a); d < least {
			best, least = a, d
		}
	}
	return best
}

// distance is how many bytes must be put in, taken out or changed to make one name of the other
// (Levenshtein).
func distance(a, b string) int {
	if len(a) > longest {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
