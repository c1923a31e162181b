package serve

import (
	"bytes"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/listener"
	"github.com/fullpipe-net/fullpipe/internal/cli/settings"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/secret"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestServeWeb_LimitsStoredResultsPerClient checks that one client's stored results are limited without a log
// line, and that the owner's results stay.
func TestServeWeb_LimitsStoredResultsPerClient(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(store.Variable, dir)
	t.Setenv(secret.Store, "")
	t.Setenv(settings.Variable, "")
	var said bytes.Buffer
	cmd := New()
	cmd.SetContext(t.Context())
	cmd.SetErr(&said)
	cfg := listener.SpeedConfig(cmd, 16, 1<<30)
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	const extra = 5
	for n := range store.DefaultClientResultsADay + extra {
		doc := &record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1", Version: "test",
			StartedAt: begin.Add(time.Duration(n) * time.Minute)}, Peer: record.BrowserScheme + "192.0.2.7",
			Directions: []record.Direction{{Direction: "up", Streams: []record.Stream{}}}}
		cfg.Seal(doc, time.Second)
		if err := cfg.Keep(t.Context(), doc); err != nil {
			t.Fatal(n, err)
		}
	}
	s := must.Get(store.Open(t.Context(), dir))(t)
	defer s.Close()
	runs, err := s.List(t.Context(), store.Filter{})
	if err != nil || len(runs) != store.DefaultClientResultsADay || said.Len() > 0 {
		t.Errorf("%d results are kept, %v; said: %s", len(runs), err, &said)
	}
	if here, err := s.MeasuredHere(t.Context(), runs[0].PathKey); err != nil || here {
		t.Errorf("a client's result counts as measured here: %v, %v", here, err)
	}
}
