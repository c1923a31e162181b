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
		r := &runs[i]
		one := record.HistoryRun{ID: r.ID, PathKey: r.Path, Far: r.Far, Kind: r.Kind, StartedAt: r.Started, Origin: r.Origin,
			Outcome: r.Outcome,
			Labels:  r.Labels, Directions: []record.HistoryFigure{}}
		for _, f := range r.Directions {
			one.Directions = append(one.Directions, record.HistoryFigure(f))
		}
		out = append(out, one)
	}
	return out
}
