package mesh

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

const office = `
[site.berlin]
agents = ["ber-*"]
uplink = "berlin-wan"
[site.frankfurt]
labels = { site = "frankfurt" }
[link.berlin-wan]
day-bytes = "200GB"
[task.throughput]
between = ["site:berlin", "site:frankfurt", "gw-1"]
every = "6h"
time = "5s"
most = "200MB"
quiet-hours = "08:00-18:00"
zone = "Europe/Berlin"
[limits]
day-bytes = "50GB"
[alert.noc]
webhook = "https://alerts.example.net/hook"
on = ["dip", "limiter"]
sites = ["berlin"]
`

func TestParse(t *testing.T) {
	m := must.Get(Parse([]byte(office)))(t)
	task := m.Tasks["throughput"]
	if task.Streams != 1 || task.RunTime() != 12*time.Second || task.RunBytes() != 400e6 {
		t.Errorf("throughput: %+v, a run takes %v and %d bytes", task, task.RunTime(), task.RunBytes())
	}
	if m.Limits.MostFull != 0.6 || m.Links["berlin-wan"].DayBytes != 200e9 {
		t.Errorf("limits %+v, links %+v", m.Limits, m.Links)
	}
	quiet, err := task.Quiet(time.UTC)
	if err != nil || !quiet.Quiet(time.Date(2026, 1, 5, 7, 30, 0, 0, time.UTC)) {
		t.Errorf("08:30 in Berlin is not quiet: %v", err)
	}
}

// TestParse_Faults checks that each fault is reported with its place.
func TestParse_Faults(t *testing.T) {
	task := "[task.a]\nbetween = [\"*\"]\nevery = \"6h\"\n"
	for _, c := range []struct{ text, want string }{
		{"[task.a]\nbetwen = [\"*\"]", "line 2: there is no setting task.a.betwen (between?)"},
		{"[task.a]\nevery = \"6h\"", "task.a: needs between"},
		{task + "from = [\"x\"]\nto = [\"y\"]", "give one of both"},
		{"[task.a]\nfrom = [\"x\"]\nevery = \"6h\"", "from and to belong together"},
		{"[task.a]\nfrom = [\"x\"]\nto = [\"y\"]\nevery = \"6h\"\nneighbours = 2", "task.a.neighbours: belongs to between"},
		{"[task.a]\nbetween = [\"*\"]", "task.a.every: 0 ns is not between 60 s and"},
		{"[task.a]\nbetween = [\"*\"]\nevery = \"soon\"", `time "soon": not a time`},
		{task + "most = \"much\"", `size "much"`},
		{task + "time = \"1h\"", "task.a.time: 1h is not between 100 ms and 10m"},
		{task + "streams = 1000", "task.a.streams: 1000 is not between 1 and 128"},
		{task + "kind = \"latency\"", "kind"},
		{task + "quiet-hours = \"00:00-23:30\"", "task.a.quiet-hours: they leave less than an hour"},
		{task + "quiet-hours = \"8-9\"", `task.a.quiet-hours: "8-9" is no span`},
		{task + "zone = \"Mars/Base\"", `task.a.quiet-hours: zone "Mars/Base"`},
		{"[task.a]\nbetween = [\"site:x\"]\nevery = \"6h\"", `task.a.between: there is no site "x"`},
		{"[task.a]\nbetween = [\"[\"]\nevery = \"6h\"", "is not a pattern"},
		{"[task.\"a b\"]\nbetween = [\"*\"]\nevery = \"6h\"", "task.a b: a name has letters"},
		{"[site.x]", "site.x: needs agents or labels"},
		{"[site.x]\nagents = [\"*\"]\nuplink = \"wan\"", "site.x.uplink: there is no [link.wan]"},
		{"[link.l]\nbetween = [\"x\"]", `link.l.between: there is no site "x"`},
		{"[limits]\nmost-full = 1.5", "limits.most-full: 1.5 is not more than 0 and at most 0.9"},
		{"[limits]\nmost-full = nan", "limits.most-full: NaN is not"},
		{"[alert.a]\nwebhook = \"http://10.1.2.3:9000/hook\"",
			"alert.a.webhook: reports about your paths would go to 10.1.2.3"},
		{"[alert.a]\nwebhook = \"http://alerts\"",
			"alert.a.webhook: reports about your paths would go to alerts unencrypted"},
		{"[alert.a]\nwebhook = \"http://localhost.example.net/\"", "unencrypted"},
		{"[alert.a]\nwebhook = \"http://127.0.0.1@198.51.100.7/\"", "unencrypted"},
		{"[alert.a]\nwebhook = \"https:///hook\"", "alert.a.webhook: is not a URL"},
		{"keep = \"90m\"", "keep: at least 24h"},
		{"keep = \"xd\"", "not a number of days"},
		{"[alert.a]\nsites = [\"x\"]", "alert.a.webhook: is not a URL"},
		{"[alert.a]\nalertmanager = \"http://am.example.net:9093\"", "alert.a.alertmanager: reports about your paths"},
		{"[alert.a]\nalertmanager = \"https://am\"\nwebhook = \"https://b\"", "alert.a: has webhook and alertmanager"},
		{"[alert.a]\nwebhook = \"https://b.example.net\"\nsites = [\"x\"]", "alert.a.sites: there is no site"},
		{"[alert.a]\nwebhook = \"https://b.example.net\"\nprogram = \"/bin/sh\"", "program"},
		{"[alert.a]\nwebhook = \"https://b.example.net\"\non = [\"dipp\", \"rtt\"]", `alert.a.on: there is no change "dipp" (dip?)`},
		{"[alert.a]\nwebhook = \"https://b.example.net\"\non = [\"agent-away\"]", `"agent-away": one of goodput, rtt, limiter`},
		{strings.Repeat("#", MaxFile+1), "at most 1048576 are read"},
	} {
		_, err := Parse([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want %q", c.text, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(office))
	f.Add([]byte("[task.a]\nfrom=[\"*\"]\nto=[\"site:*\"]\nevery=\"1h\"\nper-site=1"))
	agents := fleet(12, 3)
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		plan, err := m.Plan(agents)
		if err != nil {
			return
		}
		for _, load := range plan.Loads {
			if load.Full > m.Limits.MostFull*1.001 {
				t.Errorf("%s is occupied for %.3f of the time, at most %.3f is allowed", load.Resource, load.Full,
					m.Limits.MostFull)
			}
			if limit := load.Budget.Bytes; limit > 0 && float64(load.BytesADay) > headroom*float64(limit)*1.01+1 {
				t.Errorf("%s moves %d bytes a day, its budget is %d", load.Resource, load.BytesADay, limit)
			}
		}
	})
}

func TestReasons_AreClosedAndDistinct(t *testing.T) {
	for _, state := range []State{Failed, Refused, Skipped, Lost} {
		seen := map[Reason]bool{}
		for _, reason := range Reasons(state) {
			if seen[reason] || reason == "" {
				t.Errorf("%s has the reason %q twice", state, reason)
			}
			seen[reason] = true
		}
		if len(seen) == 0 || !state.Final() {
			t.Errorf("%s: final %v, reasons %v", state, state.Final(), seen)
		}
	}
	if Reasons(Done) != nil || Due.Final() || Granted.Final() || !Done.Final() {
		t.Error("done needs no reason; due and granted are not final")
	}
}

// TestReasons_AreDocumented checks that docs/fleet.md explains each state and reason.
func TestReasons_AreDocumented(t *testing.T) {
	text := must.Get(os.ReadFile("../../../docs/fleet.md"))(t)
	for _, state := range []State{Done, Failed, Refused, Skipped, Lost} {
		if !strings.Contains(string(text), "| `"+string(state)+"` |") {
			t.Errorf("docs/fleet.md has no state %s", state)
		}
		for _, reason := range Reasons(state) {
			if !strings.Contains(string(text), "`"+string(reason)+"`") {
				t.Errorf("docs/fleet.md has no reason %s of %s", reason, state)
			}
		}
	}
}
