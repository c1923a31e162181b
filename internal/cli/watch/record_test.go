package watch

import (
	"context"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/settings"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// TestAKilledWatchKeepsItsMinutes: of a watch that is killed, all minutes but the one that was not over
// are in the history, as one that was cut off; the next watch begins a record of its own.
func TestAKilledWatchKeepsItsMinutes(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("FULLPIPE_HISTORY", dir)
	t.Setenv("FULLPIPE_STATE", dir)
	t.Setenv(settings.Variable, "")
	recording := func() *cobra.Command {
		cmd := New()
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		cmd.SetContext(t.Context())
		must.Do(t, cmd.ParseFlags([]string{"--record"}))
		return cmd
	}
	minute := func(n int) *record.WatchMinute {
		return &record.WatchMinute{At: units.Duration(n) * units.Duration(time.Minute), Length: units.Duration(time.Minute)}
	}
	killed := &keeper{cmd: recording()} // its goroutine ends between two minutes
	killed.keep(minute(1))
	killed.keep(minute(2))
	next := newKeeper(recording(), false)
	next.send(minute(1))
	next.close()
	if killed.failed != nil || next.failed != nil || next.unkept+next.lost > 0 {
		t.Fatalf("%v, %v", killed.failed, next.failed)
	}
	s := must.Get(store.Open(context.Background(), filepath.Clean(dir)))(t)
	defer s.Close()
	runs, err := s.List(t.Context(), store.Filter{})
	if err != nil || len(runs) != 2 {
		t.Fatalf("%v: %+v", err, runs)
	}
	minutes := map[record.Outcome]int{}
	for _, r := range runs {
		doc := must.Get(s.Document(t.Context(), r.ID))(t)
		kept, ok := doc.(*record.WatchKept)
		if !ok {
			t.Fatalf("%T", doc)
		}
		minutes[r.Outcome] += len(kept.Minutes)
	}
	if minutes[record.Interrupted] != 2 || minutes[record.Done] != 1 {
		t.Errorf("minutes by outcome: %v", minutes)
	}
}
