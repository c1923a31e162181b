package history

import (
	"io"
	"strconv"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// exportTable writes a line for each direction, the oldest run first.
func exportTable(out io.Writer, runs []store.Run, anonymize bool) error {
	w := text.NewCSVWriter(out)
	w.Write([]string{"started_at", "id", "path_key", "peer", "kind", "origin", "outcome", "direction", "goodput_bps",
		"rtt_min_s", "limiter"})
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', 9, 64)
	}
	for i := len(runs) - 1; i >= 0; i-- {
		r := &runs[i]
		id := r.ID
		path := r.PathKey
		far := r.Far
		if anonymize {
			id = ""
			path = ""
			far = ""
		}
		for _, f := range r.Directions {
			w.Write([]string{r.StartedAt.Format(time.RFC3339Nano), id, path, far, r.Kind, string(r.Origin), string(r.Outcome),
				f.Direction,
				number(f.GoodputBps), number(f.RTTMinS), f.Limiter})
		}
	}
	w.Flush()
	return w.Error()
}
