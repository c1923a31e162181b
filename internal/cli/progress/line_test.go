package progress

import (
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
)

// TestLine_TimeLeft checks the estimate: from the first progress on, anew for each part of a loop, and from the share
// at which a resumed loop begins.
func TestLine_TimeLeft(t *testing.T) {
	at := time.Unix(1e9, 0)
	out := &narrow{columns: 100}
	l := &Line{out: out, now: func() time.Time { return at }}
	for _, step := range []struct {
		after time.Duration
		share float64
		want  string
	}{
		{0, 0, ""}, {2 * time.Second, 0.05, "about 38 s left"}, {8 * time.Second, 0.5, "about 10 s left"},
		{0, 0.2, ""}, {10 * time.Second, 0.6, "about 10 s left"}, {10 * time.Second, 1, ""},
	} {
		at = at.Add(step.after)
		out.Reset()
		l.Draw(step.share, "up  ", 0, "trying")
		if got := out.String(); step.want == "" && strings.Contains(got, "left") || !strings.Contains(got, step.want) {
			t.Errorf("share %v: %q, want %q", step.share, got, step.want)
		}
	}
}

func TestBar_ShowsBothDirections(t *testing.T) {
	out := &narrow{columns: 80}
	b := newBar(out, transfer.Spec{Direction: transfer.Up, Time: 10 * time.Second},
		transfer.Spec{Direction: transfer.Down, Time: 10 * time.Second})
	b.out = out
	b.show(transfer.Up, transfer.Interval{End: 100 * time.Millisecond, Bytes: 125_000})
	b.show(transfer.Down, transfer.Interval{End: 500 * time.Millisecond, Bytes: 62_500})
	want := "\r\x1b[K[" + "=" + strings.Repeat(" ", 29) + "]  0.5 s  up 10 Mbit/s  down 1 Mbit/s"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// TestLine_ShowPart checks that a search and its application share a bar, also if the search's budget grows.
func TestLine_ShowPart(t *testing.T) {
	out := &narrow{columns: 100}
	l := &Line{out: out, now: time.Now}
	for _, step := range []struct {
		done float64
		part int
		want string
	}{{0, 0, "  0 %"}, {0.8, 0, " 40 %"}, {0.4, 0, " 40 %"}, {1, 0, " 50 %"}, {0.5, 1, " 75 %"}, {1, 1, "100 %"}} {
		out.Reset()
		l.ShowPart(tune.Progress{Direction: transfer.Up, Done: step.done}, step.part, 2)
		if !strings.Contains(out.String(), step.want) {
			t.Errorf("part %d, %v: %q, want %q", step.part, step.done, out.String(), step.want)
		}
	}
}
