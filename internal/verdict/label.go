package verdict

import "strings"

// Suffix returns " (policer)" for a subtype and "" where there is none.
func Suffix(subtype string) string {
	if subtype == "" {
		return ""
	}
	return " (" + subtype + ")"
}

// Join returns names of limiters or causes with a separator between them.
func Join[N ~string](names []N, separator string) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	return strings.Join(texts, separator)
}
