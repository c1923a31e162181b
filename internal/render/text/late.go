package text

import (
	"fmt"
	"io"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// Late warns that the lab's delays make a document's figures unreliable; "" if they do not.
func Late(doc record.Document) string {
	l := doc.Head().Late
	if !record.Doubtful(doc) {
		return ""
	}
	return fmt.Sprintf("this machine was too busy for an exact lab: it stalled for %s of %s (%s, the longest %s), and 1 "+
		"packet in 100 was %s late or more; stop other work here and run it again",
		SecondsText(l.StalledS), SecondsText(l.WatchedS), count(int(l.Stalls), "time"), SecondsText(l.MaxS),
		SecondsText(l.P99S))
}

func lateNote(w io.Writer, doc record.Document) {
	if said := Late(doc); said != "" {
		writeParts(w, part{render.Warning, said})
		fmt.Fprintln(w)
	}
}
