package text

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/plan"
)

// TestPlanSentences makes plans with every warning and note, and checks that each statement has the
// arguments of its sentence.
func TestPlanSentences(t *testing.T) {
	seen := map[plan.Code]bool{}
	check := func(p *plan.Plan, err error) {
		if err != nil {
			t.Fatal(err)
		}
		for _, all := range [][]plan.Statement{p.Warnings, p.Notes} {
			for i, line := range PlanSentences(all) {
				seen[all[i].Code] = true
				if line == "" || strings.Contains(line, "%!") {
					t.Errorf("%s %s: %q", p.Target, all[i].Code, line)
				}
			}
		}
	}
	const ms = time.Millisecond
	paths := []plan.Path{{RateBps: 1e9, RTT: 100 * ms}, {RateBps: 1e5, RTT: 10 * ms}, {RateBps: 400e9, RTT: time.Second},
		{RateBps: 1e7, RTT: 11 * time.Second},
		{RateBps: 25e9, FlowCapBps: 5e9, RTT: 70 * ms},
		{RateBps: 20e6, RTT: 50 * ms, Connections: 90, MemoryBytes: 256 << 20},
		{RateBps: 0.5e6, RTT: 30 * ms, Connections: 250, MemoryBytes: 96 << 20},
		{RateBps: 1e6, RTT: 60 * ms, Connections: 700, MemoryBytes: 64 << 20},
		{RateBps: 10e6, RTT: 85 * ms, Connections: 300, MemoryBytes: 128 << 20},
		{RateBps: 1e5, RTT: 30 * ms, Connections: 3000, MemoryBytes: 1 << 30}}
	values := []map[string]string{nil, {"AutoTuningLevelEffective": "GroupPolicy", "AutoTuningLevelLocal": "Experimental"},
		{"net.ipv4.tcp_rmem": "none", "net.ipv4.tcp_wmem": "4096 16384 2147483647"}}
	for _, name := range plan.Targets() {
		target, err := plan.ParseTarget(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			for _, known := range values {
				check(plan.New(path, target, plan.Options{Values: known}))
			}
		}
		check(plan.NewForAll(paths[:2], target, plan.Options{}))
		check(plan.NewForAll(paths[:2], target, plan.Options{MaxDelay: ms}))
		check(plan.NewForAll(paths[1:2], target, plan.Options{}))
		if strings.HasPrefix(name, "linux") {
			check(plan.New(paths[0], target, plan.Options{Route: plan.Route{Prefix: "10.0.0.0/8", Via: "192.0.2.1",
				Clamp: true}}))
		}
	}
	short := []any{2, "s", "1 MiB", "16 MiB"}
	check(&plan.Plan{Warnings: []plan.Statement{{Code: plan.MemoryShort, Args: short},
		{Code: plan.MemoryBounds, Args: append(short, "8 KiB")}}}, nil)
	source, err := os.ReadFile("../../plan/notes.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`\bCode = "([^-].*)"`).FindAllSubmatch(source, -1)
	for _, m := range codes {
		if !seen[plan.Code(m[1])] {
			t.Errorf("no plan states %s", m[1])
		}
	}
	if len(codes)+2 != len(planSentences) { // two more are made of others
		t.Errorf("%d codes, %d sentences", len(codes), len(planSentences))
	}
}
