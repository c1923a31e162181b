package didyoumean

import "regexp"

var word = regexp.MustCompile(`^[A-Za-z0-9_/.:\[{@%+,][A-Za-z0-9_/.:\[\]{}@%+,=-]{0,252}$`)

// IsWord reports whether a shell takes text as one word, unquoted. Foreign text, as a far end's name of an imported
// result or an interface of a snapshot, enters a command line only then.
func IsWord(text string) bool { return word.MatchString(text) }
