// Package spell finds what a misspelt name was meant to be.
package spell

// Nearest is the candidate that takes the fewest edits to become name, or "" when all
// are far off.
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

// Far is how many edits a name may be off and still be recognised.
func Far(name string) int { return max(2, len(name)/3) }

// longest is the longest name that is compared: what a user pastes may be a file.
const longest = 200

// Distance is Levenshtein's: the single-byte edits between two names.
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
