package recheck

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/output"
)

// mark is the newest result of a series that was told of: of all until there whoever is to
// know has been told, of none after it. A process that is killed between keeping a result and
// telling of it leaves the mark where it was, and the next one tells.
type mark struct {
	at time.Time
	id string // of the run
}

func (m mark) after(o mark) bool {
	return cmp.Or(m.at.Compare(o.at), cmp.Compare(m.id, o.id)) > 0
}

// markFile is where a series' mark stands: on this host, since it is this host's processes
// that tell, wherever the history is.
func (k *rechecker) markFile(series string) string {
	return filepath.Join(k.dir, "recheck-"+series+".told")
}

const markForm = "fullpipe recheck told 1 %d %s\n" // when the run began, ns since 1970; its id, - for none

// readMark answers a series' mark; false where there is none that can be read.
func (k *rechecker) readMark(series string) (m mark, ok bool) {
	text, err := os.ReadFile(k.markFile(series))
	if err != nil {
		return m, false
	}
	var ns int64
	if _, err := fmt.Sscanf(string(text), markForm, &ns, &m.id); err != nil {
		return m, false
	}
	m.at = time.Unix(0, ns)
	return m, true
}

// mark moves a series' mark on. Where that fails, an event may be told twice: that is said.
func (k *rechecker) mark(series string, m mark) {
	if err := k.writeMark(series, m); err != nil && !k.unmarked {
		k.unmarked = true
		console.Note(k.cmd, "what was told cannot be marked as told, and may be told again: %v", err)
	}
}

func (k *rechecker) writeMark(series string, m mark) error {
	ns := int64(0)
	if !m.at.IsZero() {
		ns = m.at.UnixNano()
	}
	return k.replace(k.markFile(series), fmt.Appendf(nil, markForm, ns, cmp.Or(m.id, "-")))
}

// replace writes a small file beside the history, whole or not at all.
func (k *rechecker) replace(name string, text []byte) error {
	return output.WritePrivate(context.Background(), name, text)
}
