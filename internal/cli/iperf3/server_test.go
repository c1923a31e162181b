package iperf3

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
)

// TestServerPrinter_RefusedClientDuringTest reports refused clients while a test runs: the test's document stays,
// nothing is printed, and a server with -1 goes on. Without a test, a refused client is printed and does not end
// the server.
func TestServerPrinter_RefusedClientDuringTest(t *testing.T) {
	refused := iperf3.Report{From: netip.MustParseAddrPort("192.0.2.1:1"),
		Err: fmt.Errorf("%w: user or password is wrong", iperf3.ErrNotAuthorized)}
	busy := iperf3.Report{Authenticated: true, Err: iperf3.ErrTurnedAway}
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	cmd.SetContext(t.Context())
	ended := false
	h := &serverPrinter{f: &flags{}, cmd: cmd, end: func() { ended = true }}
	h.f.server.oneOff = true
	h.onStart(netip.MustParseAddrPort("192.0.2.2:1"), iperf3.TestResult{Params: iperf3.Params{Time: 1, Streams: 1}})
	running := h.doc
	out.Reset()
	h.report(refused)
	h.report(busy)
	if h.doc != running || running == nil || h.cuts == nil || out.Len() > 0 || ended {
		t.Errorf("during a test: ended %v, printed %q", ended, out.String())
	}
	h.doc, h.cuts = nil, nil
	h.report(busy)
	if out.Len() > 0 || ended {
		t.Errorf("client without a slot: ended %v, printed %q", ended, out.String())
	}
	h.report(refused)
	if out.Len() == 0 || ended {
		t.Errorf("unauthorized client: ended %v, printed %q", ended, out.String())
	}
	h.report(iperf3.Report{Authenticated: true, Err: iperf3.ErrIdle})
	if !ended {
		t.Error("a server of one test goes on after it")
	}
}
