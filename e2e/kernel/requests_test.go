//go:build linux

package kernel

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
)

// TestRequests_MatchKernelCounters sends 50 requests in a second over a path without loss, to a fullpipe server and to
// nginx. It compares the connections with those that both ends' kernels counted.
func TestRequests_MatchKernelCounters(t *testing.T) {
	t.Parallel()
	l, env := harness.StartWebSite(t, "rate=20mbit,rtt=10ms,queue=2MB")
	program := harness.Program(t)
	env = append(env, "FULLPIPE_KEY="+probe.NewKey().String())
	server, err := l.Far.Start(lab.Command{Args: []string{program, "serve", "--quiet"}, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	l.Far.AwaitListener(t.Context(), server)
	far := lab.FarAddr.String()
	for _, c := range []struct {
		peer, method string
		others       int64 // connections besides the load's
		tls          bool
	}{
		{"fullpipe://" + far, "rr", 1, false},
		{"fullpipe://" + far, "crr", 1, false},
		{"http://" + far + "/cert.pem", "rr", 1, false},
		{"http://" + far + "/cert.pem", "crr", 1, false},
		{"https://" + far + ":444/cert.pem", "rr", 1, true},
		{"https://" + far + ":444/cert.pem", "crr", 1, true},
	} {
		near, accepted := opened(t, l.Near), counter(t, l.Far, "PassiveOpens")
		var doc printed.MeasureRequests
		harness.RunJSON(t, l.Near, &doc, env, "measure", c.peer, "--"+c.method, "--rate", "50", "--concurrency", "4",
			"-t", "1s", "--json", "--no-history")
		name := c.method + " " + c.peer
		near = opened(t, l.Near) - near
		accepted = counter(t, l.Far, "PassiveOpens") - accepted
		if doc.Turns == nil {
			t.Fatalf("%s: no request was answered", name)
		}
		n := doc.Turns.Count
		if due := n + doc.Turns.Unanswered + doc.NotStarted + doc.Failed; due != 50 || doc.Failed != 0 {
			t.Errorf("%s: %d of %d requests, %d failed", name, n, due, doc.Failed)
		}
		if near != doc.Connections+c.others || accepted != near {
			t.Errorf("%s: %d connections, the kernels counted %d and %d", name, doc.Connections, near, accepted)
		}
		if c.method == "rr" && doc.Connections != 4 || c.method == "crr" && (doc.Connections < n || doc.Connections > n+4) {
			t.Errorf("%s: %d requests on %d connections", name, n, doc.Connections)
		}
		var statuses, connecting, securing int64
		for _, s := range doc.Statuses {
			statuses += s.Count
		}
		for _, s := range doc.Stages {
			connecting += isStage(s, "connect")
			securing += isStage(s, "tls")
		}
		if isWeb := strings.HasPrefix(c.peer, "http"); isWeb && statuses != n || !isWeb && statuses != 0 {
			t.Errorf("%s: statuses %+v of %d requests", name, doc.Statuses, n)
		}
		isNew := c.method == "crr"
		if isNew != (connecting > 0) || (isNew && c.tls) != (securing > 0) {
			t.Errorf("%s: stages %+v", name, doc.Stages)
		}
	}
}

// isStage is 1 for a part of the stage that waited for the path's round trip.
func isStage(s printed.Stage, name string) int64 {
	if s.Stage == name && s.Cause == "propagation" {
		return 1
	}
	return 0
}

// opened counts the connections that an end opened. Those to a server that does not listen yet were refused.
func opened(t *testing.T, e *lab.End) int64 {
	t.Helper()
	return counter(t, e, "ActiveOpens") - counter(t, e, "AttemptFails")
}

// counter reads a counter of TCP of an end's kernel.
func counter(t *testing.T, e *lab.End, name string) (n int64) {
	t.Helper()
	var out bytes.Buffer
	if _, err := e.Run(lab.Command{Args: []string{"cat", "/proc/net/snmp"}, Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "Tcp:") {
			continue
		}
		fields := strings.Fields(line)
		if names == nil {
			names = fields
			continue
		}
		for i, value := range fields {
			if names[i] == name {
				if _, err := fmt.Sscan(value, &n); err != nil {
					t.Fatal(err)
				}
				return n
			}
		}
	}
	t.Fatalf("no %s in %s", name, out.String())
	return 0
}
