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
	stalled := ""
	if l.Stalls > 0 {
		stalled = fmt.Sprintf("it stalled for %s of %s (%s, the longest %s), and ", SecondsText(l.StalledS),
			SecondsText(l.WatchedS), count(int(l.Stalls), "time"), SecondsText(l.MaxS))
	}
	return fmt.Sprintf("this machine was too busy for an exact lab: %s1 packet in 100 was %s late or more; stop other "+
		"work here and run it again", stalled, SecondsText(l.P99S))
}

func lateNote(w io.Writer, doc record.Document) {
	if said := Late(doc); said != "" {
		writeParts(w, part{render.Warning, said})
		fmt.Fprintln(w)
	}
}
