package text

import (
	"fmt"
	"io"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// lateNote warns that the lab's delays make its measurements unreliable.
func lateNote(w io.Writer, l *record.Late) {
	if l == nil || l.Believable {
		return
	}
	said := fmt.Sprintf("lab too late to be believed: it stalled for %s of %s (%d times, the longest %s), and 1 "+
		"packet in 100 was %s late or more; stop other work on this machine",
		SecondsText(l.StalledS), SecondsText(l.WatchedS), l.Stalls, SecondsText(l.MaxS), SecondsText(l.P99S))
	fmt.Fprintf(w, "\n%s\n", indent(said, "", render.Columns(w)))
}
