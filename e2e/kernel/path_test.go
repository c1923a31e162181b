//go:build linux

package kernel

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/path"
)

// asked is the output of pathProgram.
type asked struct {
	RoundTrips path.RoundTrips
	MTU        path.MTU
}

// pathProgram probes the lab's path.
func pathProgram() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	far := netip.AddrPortFrom(netip.MustParseAddr(os.Getenv("FULLPIPE_FAR")), 5201)
	var a asked
	var err error
	if a.RoundTrips, err = path.Ask(ctx, far, path.Config{Count: 10}); err != nil {
		return err
	}
	if a.MTU, err = path.FindMTU(ctx, far.Addr(), path.Config{}); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(a)
}

func TestThePathAsked(t *testing.T) {
	for _, tt := range []struct {
		path string
		rtt  time.Duration
		mtu  path.MTU
	}{
		{"rate=20mbit,rtt=20ms", 20 * time.Millisecond, path.MTU{Bytes: 1500, Largest: 1500}},
		{"rate=20mbit,rtt=5ms,mtu=1300", 5 * time.Millisecond, path.MTU{Bytes: 1300, Largest: 1500}},
		{"rate=20mbit,rtt=5ms,mtu=1300,icmp=drop", 5 * time.Millisecond, path.MTU{Bytes: 1300, Largest: 1500}},
		// Replies of full size take 0.2 s each: those to many sizes at once would come too late.
		{"rate=20mbit,rtt=40ms,down.rate=64kbit", 40 * time.Millisecond, path.MTU{Bytes: 1500, Largest: 1500}},
	} {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()
			p, err := link.Parse(tt.path)
			if err != nil {
				t.Fatal(err)
			}
			l, err := lab.Start(t.Context(), lab.Config{Path: p})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			status, err := l.Near.Run(lab.Command{Args: []string{self}, Env: []string{harness.ProgramVariable + "=path"},
				Stdout: &out,
				Stderr: &errs})
			if err != nil || status != 0 {
				t.Fatalf("status %d, %v: %s", status, err, errs.String())
			}
			var a asked
			if err := json.Unmarshal(out.Bytes(), &a); err != nil {
				t.Fatal(err)
			}
			// A lab sets the usual round trip to the configured one, so the least may be a little less.
			const leastBelowUsual = 500 * time.Microsecond
			if least := a.RoundTrips.Least(); least < tt.rtt-leastBelowUsual || a.RoundTrips.Lost > 0 {
				t.Errorf("round trip %v of a path of %v, %d lost", least, tt.rtt, a.RoundTrips.Lost)
			}
			if a.MTU != tt.mtu {
				t.Errorf("path MTU %+v, want %+v", a.MTU, tt.mtu)
			}
		})
	}
}
