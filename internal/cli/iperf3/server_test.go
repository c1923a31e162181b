package iperf3

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
)

// TestIperf3Host_RefusedClientBesideATest reports clients that took no place while a test runs: the
// test's document stays, nothing is printed, and a server of one test goes on. When no test runs, a
// refused client is printed, and still does not end the server.
func TestIperf3Host_RefusedClientBesideATest(t *testing.T) {
	refused := iperf3.Report{From: netip.MustParseAddrPort("192.0.2.1:1"),
		Err: fmt.Errorf("%w: user or password is wrong", iperf3.ErrNotAuthorized)}
	busy := iperf3.Report{Proven: true, Err: iperf3.ErrTurnedAway}
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	cmd.SetContext(t.Context())
	ended := false
	h := &iperf3Host{f: &iperf3Flags{}, cmd: cmd, end: func() { ended = true }}
	h.f.server.oneOff = true
	h.begun(netip.MustParseAddrPort("192.0.2.2:1"), iperf3.Account{Params: iperf3.Params{Time: 1, Streams: 1}})
	running := h.doc
	out.Reset()
	h.report(refused)
	h.report(busy)
	if h.doc != running || running == nil || h.cuts == nil || out.Len() > 0 || ended {
		t.Errorf("beside a test: ended %v, printed %q", ended, out.String())
	}
	h.doc, h.cuts = nil, nil
	h.report(busy)
	if out.Len() > 0 || ended {
		t.Errorf("who found no place: ended %v, printed %q", ended, out.String())
	}
	h.report(refused)
	if out.Len() == 0 || ended {
		t.Errorf("who is not authorized: ended %v, printed %q", ended, out.String())
	}
	h.report(iperf3.Report{Proven: true, Err: iperf3.ErrQuiet})
	if !ended {
		t.Error("a server of one test goes on after it")
	}
}
