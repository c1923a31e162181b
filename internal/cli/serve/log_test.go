package serve

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// loggingTo returns a server's log that prints to out.
func loggingTo(t *testing.T, out io.Writer, args ...string) *eventLog {
	t.Helper()
	cmd := New()
	cmd.SetOut(out)
	cmd.SetErr(out)
	cmd.Flags().Bool("json", false, "")
	must.Do(t, cmd.ParseFlags(args))
	return newServeLog(cmd, false)
}

func TestEventLog_UnreadOutputBlocksNobody(t *testing.T) {
	unread, out := io.Pipe()
	defer unread.Close()
	log := loggingTo(t, out)
	done := make(chan bool)
	go func() {
		for range 20_000 {
			log.event(server.Event{Kind: "client", Keyed: true})
			log.event(server.Event{Kind: "refused", Err: errors.New("not a fullpipe client")})
		}
		log.close()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("logging waits for the reader")
	}
}

// Unauthenticated clients add a limited number of lines, cannot control a terminal, and suppressed events are
// counted.
func TestEventLog_LimitsUnauthenticatedClients(t *testing.T) {
	for _, args := range [][]string{nil, {"--json"}} {
		var out bytes.Buffer
		log := loggingTo(t, &out, args...)
		from := netip.MustParseAddrPort("192.0.2.7:4000")
		for range 20_000 {
			log.event(server.Event{Kind: "refused", Client: from, Err: errors.New("says \x1b]0;owned\a\r\u009b2J\u202e" +
				strings.Repeat("x", 1000))})
		}
		log.event(server.Event{Kind: "client", Client: from, Keyed: true})
		log.close()
		if out.Len() > 20_000 {
			t.Errorf("%v: unauthenticated clients wrote %d bytes", args, out.Len())
		}
		if strings.ContainsAny(out.String(), "\x1b\a\r\u009b\u202e") {
			t.Errorf("%v: control characters are printed: %.200q", args, out.String())
		}
		if !strings.Contains(out.String(), "19976") || !strings.Contains(out.String(), "client") {
			t.Errorf("%v: suppressed lines are not counted, or a client is missing: %s", args, out.String())
		}
	}
}
