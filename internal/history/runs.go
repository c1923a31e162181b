package history

import (
	"regexp"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// PlainWord is what a shell takes as it stands: a far end's name can be somebody else's text, in
// an imported result, and what completion offers is put on the command line.
var PlainWord = regexp.MustCompile(`^[A-Za-z0-9_/.:\[\]@%+,][A-Za-z0-9_/.:\[\]@%+,=-]*$`)

// ShortRuns turns the store's runs, the newest first, into the document's, the oldest first.
func ShortRuns(runs []store.Run) []record.HistoryRun {
	out := []record.HistoryRun{}
	for i := len(runs) - 1; i >= 0; i-- {
		out = append(out, runs[i].HistoryRun)
	}
	return out
}
