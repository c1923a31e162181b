package cli

import (
	"bytes"
	"context"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// A record names the test as the far end does, and says how far their clocks are apart.
func TestRecordJoinsTheFarEnds(t *testing.T) {
	t.Setenv("FULLPIPE_STATE", t.TempDir())
	key := probe.NewKey()
	there := make(chan string, 1)
	far, err := server.New(t.Context(), server.Config{Address: "127.0.0.1:0", Key: key, Event: func(e server.Event) {
		if e.Result != nil {
			there <- e.Result.Spec.TestID
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- far.Serve(ctx) }()
	defer func() {
		stop()
		<-done
	}()
	t.Setenv("FULLPIPE_KEY", key.String())
	var out, errs bytes.Buffer
	args := []string{"measure", "--json", "--no-history", "--bytes", "1000", "--direction", "up", far.Addr().String()}
	if status := run(t.Context(), args, console.NewStreams(&bytes.Buffer{}, &out, &errs)); status != exit.Done {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	doc := must.Get(record.Decode(out.Bytes(), nil))(t)
	e := doc.Head().Envelope
	if id := <-there; id == "" || e.TestID != id {
		t.Errorf("%q here, %q there", e.TestID, id)
	}
	if c := e.FarClock; c == nil || c.BoundS <= 0 || c.OffsetS > c.BoundS || c.OffsetS < -c.BoundS {
		t.Errorf("the same clock is %+v away", c)
	}
}
