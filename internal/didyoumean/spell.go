// Package didyoumean suggests names for misspelt ones.
package didyoumean

// Nearest returns the candidate with the fewest edits to name, or "" if all have more than Far.
func Nearest(name string, candidates []string) string {
	best := ""
	least := Far(name) + 1
	for _, c := range candidates {
		if n := Distance(name, c); n < least {
			best = c
			least = n
		}
	}
	return best
}

// Far returns the largest number of edits at which a name is still suggested: one of a name of three letters, two of a
// longer one, and a third of a long one.
func Far(name string) int { return max(min(len(name)-2, 2), len(name)/3, 1) }

// longest is the longest name that is compared, because a user may paste a whole file.
const longest = 200

// Distance returns the number of single-byte edits between two names (Levenshtein).
func Distance(a, b string) int {
	if len(a) > longest {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
