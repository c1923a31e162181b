package report_test

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

// TestWatch_CountsEveryListedConnection lists connections that ended within the span.
func TestWatch_CountsEveryListedConnection(t *testing.T) {
	for _, test := range []struct{ matched, seen, lighter, want int }{
		{0, 2, 0, 2}, {5, 2, 1, 5}, {1, 2, 3, 5}, {0, 0, 0, 0},
	} {
		v := &watch.View{Matched: test.matched, Lighter: test.lighter}
		for range test.seen {
			v.Connections = append(v.Connections, watch.Observed{Connection: &watch.Connection{}})
		}
		if w := report.Watch(record.Header{}, "", v); w.Matching != test.want {
			t.Errorf("%+v: %d", test, w.Matching)
		}
	}
}
