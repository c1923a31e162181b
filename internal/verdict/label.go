package verdict

import (
	"slices"
	"strings"
)

// labels are the words for people of the subtypes whose word in documents differs. JSON of version 1 keeps its words.
var labels = map[string]string{ScaleZero: "scale-0", AutotuneCeiling: "autotune-ceiling"}

// Label returns the word for people of a subtype.
func Label(subtype string) string {
	if label, ok := labels[subtype]; ok {
		return label
	}
	return subtype
}

// ParseSubtype returns the subtype of a word in either spelling: that of documents or that for people.
func ParseSubtype(word string) string {
	for subtype, label := range labels {
		if word == label {
			return subtype
		}
	}
	return word
}

// LimiterPath returns "congestion/policer" as users write it in flags.
func LimiterPath(limiter Name, subtype string) string {
	if subtype == "" {
		return string(limiter)
	}
	return string(limiter) + "/" + Label(subtype)
}

// ParseLimiter returns the limiter and subtype of a word of flags and arguments: a limiter, LIMITER/SUBTYPE, or a
// subtype alone. It returns false if there is none of that name.
func ParseLimiter(word string) (limiter Name, subtype string, ok bool) {
	name, subtype, both := strings.Cut(word, "/")
	if slices.Contains(Names(), Name(name)) {
		subtype = ParseSubtype(subtype)
		return Name(name), subtype, !both || slices.Contains(Subtypes(Name(name)), subtype)
	}
	if both {
		return "", "", false
	}
	subtype = ParseSubtype(name)
	for _, limiter := range Names() {
		if slices.Contains(Subtypes(limiter), subtype) {
			return limiter, subtype, true
		}
	}
	return "", "", false
}

// Suffix returns " (policer)" for a subtype, in the word for people, and "" where there is none.
func Suffix(subtype string) string {
	if subtype == "" {
		return ""
	}
	return " (" + Label(subtype) + ")"
}

// Join returns names of limiters or causes with a separator between them.
func Join[N ~string](names []N, separator string) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	return strings.Join(texts, separator)
}
