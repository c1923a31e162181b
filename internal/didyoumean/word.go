package didyoumean

import "regexp"

// longestWord is as long as a host name may be.
const longestWord = 253

var word = regexp.MustCompile(`^[A-Za-z0-9_/.:\[{@%+,][A-Za-z0-9_/.:\[\]{}@%+,=-]*$`)

// IsWord reports whether a shell takes text as one word, unquoted. Foreign text, as a far end's name of an imported
// result or an interface of a snapshot, enters a command line only then.
func IsWord(text string) bool { return len(text) <= longestWord && word.MatchString(text) }
