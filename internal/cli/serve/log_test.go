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
)

// loggingTo is a server's log that prints to out.
func loggingTo(t *testing.T, out io.Writer, args ...string) *serveLog {
	t.Helper()
	cmd := New()
	cmd.SetOut(out)
	cmd.SetErr(out)
	cmd.Flags().Bool("json", false, "")
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return newServeLog(cmd, false)
}

// A log that nobody reads holds nobody up, and its last lines do not either.
func TestUnreadLogHoldsNobodyUp(t *testing.T) {
	unread, out := io.Pipe()
	defer unread.Close()
	log := loggingTo(t, out)
	done := make(chan bool)
	go func() {
		for range 20_000 {
			log.event(server.Event{What: "client", Keyed: true})
			log.event(server.Event{What: "refused", Err: errors.New("not a fullpipe client")})
		}
		log.close()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("whoever logs waits for whoever reads")
	}
}

// Strangers add a bounded number of lines, what they send cannot steer a terminal, and
// what was held back is counted.
func TestStrangersDoNotGrowTheLog(t *testing.T) {
	for _, args := range [][]string{nil, {"--json"}} {
		var out bytes.Buffer
		log := loggingTo(t, &out, args...)
		from := netip.MustParseAddrPort("192.0.2.7:4000")
		for range 20_000 {
			log.event(server.Event{What: "refused", Client: from, Err: errors.New("says \x1b]0;owned\a\r\u009b2J\u202e" +
				strings.Repeat("x", 1000))})
		}
		log.event(server.Event{What: "client", Client: from, Keyed: true})
		log.close()
		if out.Len() > 20_000 {
			t.Errorf("%v: strangers wrote %d bytes", args, out.Len())
		}
		if strings.ContainsAny(out.String(), "\x1b\a\r\u009b\u202e") {
			t.Errorf("%v: a stranger's control characters are printed: %.200q", args, out.String())
		}
		if !strings.Contains(out.String(), "19970") || !strings.Contains(out.String(), "client") {
			t.Errorf("%v: what was held back is not counted, or a client is missing: %s", args, out.String())
		}
	}
}
