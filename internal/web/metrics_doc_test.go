package web

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/fleet/incident"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/segments"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/turns"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/waits"
	"github.com/fullpipe-net/fullpipe/internal/watch"
	"github.com/fullpipe-net/fullpipe/internal/watch/paths"
)

// TestMetricsDocument_ListsServedMetrics compares docs/metrics.md with the metrics of watch, recheck and the hub: each
// has one row, with its type, unit, labels and help text, and there is no other row.
func TestMetricsDocument_ListsServedMetrics(t *testing.T) {
	text := must.Get(os.ReadFile("../../docs/metrics.md"))(t)
	listed := regexp.MustCompile("(?m)^\\| `fullpipe_.*$").FindAllString(string(text), -1)
	var served []string
	for _, page := range []string{watchMetrics(t), recheckMetrics(t), fleetMetrics(t)} {
		served = append(served, metricRows(t, page)...)
	}
	if len(served) < 20 {
		t.Errorf("only %d metrics are served", len(served))
	}
	for _, row := range served {
		if !slices.Contains(listed, row) {
			t.Errorf("docs/metrics.md does not have\n%s", row)
		}
	}
	for _, row := range listed {
		if !slices.Contains(served, row) {
			t.Errorf("docs/metrics.md has, and no page\n%s", row)
		}
	}
}

// TestContributedFiles_UseServedMetrics checks that the metrics, labels and limiters of dashboards, alerts and
// docs/metrics.md exist.
func TestContributedFiles_UseServedMetrics(t *testing.T) {
	files, err := filepath.Glob("../../contrib/*/*.[yj]*")
	if err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	metrics := map[string]bool{}
	labels := map[string]bool{"instance": true, "le": true}
	for _, page := range []string{watchMetrics(t), recheckMetrics(t), fleetMetrics(t)} {
		for line := range strings.Lines(page) {
			if m := sampleLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				metrics[m[1]] = true
				for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
					labels[l[1]] = true
				}
			}
		}
	}
	metric := regexp.MustCompile(`\bfullpipe_(?:watch|recheck|fleet)_[a-z_]+`)
	label := regexp.MustCompile(`\bby \(([^)]*)\)|[{,] ?([a-z_]+)=~?\\?"`)
	limiter := regexp.MustCompile(`limiter=~?\\?"([a-z|-]+)\\?"`)
	for _, file := range append(files, "../../docs/metrics.md") {
		text := must.Get(os.ReadFile(file))(t)
		used := metric.FindAllString(string(text), -1)
		if len(used) == 0 {
			t.Errorf("%s uses nothing", file)
		}
		for _, name := range used {
			if !metrics[name] && !metrics[name+"_count"] { // a histogram's family
				t.Errorf("%s: nothing serves %s", file, name)
			}
		}
		for _, found := range label.FindAllStringSubmatch(string(text), -1) {
			for name := range strings.SplitSeq(found[1]+found[2], ",") {
				name = strings.TrimSpace(name)
				if !labels[name] && name != "$by" {
					t.Errorf("%s: no metric has the label %q", file, name)
				}
			}
		}
		for _, found := range limiter.FindAllStringSubmatch(string(text), -1) {
			for name := range strings.SplitSeq(found[1], "|") {
				if !slices.Contains(verdict.Names(), verdict.Name(name)) {
					t.Errorf("%s: there is no limiter %q", file, name)
				}
			}
		}
	}
}

var (
	helpLine   = regexp.MustCompile(`^# HELP (\S+) (.*)$`)
	typeLine   = regexp.MustCompile(`^# TYPE (\S+) (\S+)$`)
	sampleLine = regexp.MustCompile(`^([a-z_]+)(?:\{(.*)\})? \S+$`)
	labelName  = regexp.MustCompile(`(?:^|,)([a-z_]+)="(?:[^"\\]|\\.)*"`)
	unitOfName = regexp.MustCompile(`_(seconds|bytes|bps)(?:_total)?$`)
)

// metricRows returns the table rows that describe a page. Each family needs a sample, else its labels are not known.
func metricRows(t *testing.T, page string) (rows []string) {
	t.Helper()
	help := map[string]string{}
	kinds := map[string]string{}
	labels := map[string][]string{}
	var order []string
	for line := range strings.SplitSeq(strings.TrimSpace(page), "\n") {
		if m := helpLine.FindStringSubmatch(line); m != nil {
			help[m[1]] = m[2]
			order = append(order, m[1])
		} else if m := typeLine.FindStringSubmatch(line); m != nil {
			kinds[m[1]] = m[2]
		} else if m := sampleLine.FindStringSubmatch(line); m != nil {
			family := m[1]
			for _, end := range []string{"_bucket", "_sum", "_count"} {
				if base, is := strings.CutSuffix(m[1], end); is && kinds[base] == "histogram" {
					family = base
				}
			}
			names := labels[family]
			if names == nil {
				names = []string{}
			}
			for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
				if l[1] != "le" && !slices.Contains(names, "`"+l[1]+"`") {
					names = append(names, "`"+l[1]+"`")
				}
			}
			labels[family] = names
		} else {
			t.Errorf("not understood: %q", line)
		}
	}
	for _, name := range order {
		if labels[name] == nil {
			t.Errorf("%s has no sample", name)
		}
		unit := ""
		if m := unitOfName.FindStringSubmatch(name); m != nil {
			unit = strings.Replace(m[1], "bps", "bit/s", 1)
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s | %s |", name, kinds[name], unit,
			strings.Join(labels[name], " "), help[name]))
	}
	return rows
}

func written(t *testing.T, write func(out *bytes.Buffer) error) string {
	t.Helper()
	var page bytes.Buffer
	must.Do(t, write(&page))
	return page.String()
}

func watchMetrics(t *testing.T) string {
	m := watch.NewMetrics()
	c := &watch.Connection{Owner: watch.Owner{Program: "rsync", Unit: "backup.service"}}
	c.Local = netip.MustParseAddrPort("10.0.0.1:40000")
	c.Remote = netip.MustParseAddrPort("192.0.2.7:22")
	flows := []watch.Flow{{Direction: transfer.Up, Bytes: 1234, RTT: time.Millisecond,
		Verdict: verdict.Verdict{Shares: verdict.Shares{verdict.Bottleneck: 1}},
		Losses:  &transfer.Losses{Bytes: 1, Places: []transfer.LossPlace{{Reason: "QDISC_DROP", Bytes: 1}}},
		Waits:   []waits.Wait{{Place: waits.Place{Kind: waits.Disk}, Time: time.Second}}}}
	m.Add(&watch.View{Length: time.Second,
		Connections: []watch.Observed{{Connection: c, Flows: flows, Turns: oneRequest()}},
		Shifts:      []paths.Event{{Shifts: []paths.Shift{{}}}}})
	return written(t, func(out *bytes.Buffer) error { return m.Write(out, false, "v") })
}

// oneRequest returns a turn of 33 ms, and a stall.
func oneRequest() *segments.Requests {
	var t turns.Tracker
	t.AtEnd(true, 33_000_000)
	request := turns.Packet{FromClient: true, Flags: turns.ACK, Payload: 200, Window: 65535}
	t.Add(&request)
	t.Add(&turns.Packet{At: 33_000_000, Flags: turns.ACK, Ack: 200, Payload: 400, Window: 65535})
	request.At = 500_000_000
	request.Seq = 200
	request.Ack = 400
	t.Add(&request)
	t.Stalled[turns.Timeout][0] = turns.Total{Count: 1, Time: 200_000_000}
	return &segments.Requests{Summary: t.Summary, Client: true}
}

func recheckMetrics(t *testing.T) string {
	m := recheck.NewMetrics()
	d := &recheck.Detector{}
	at := time.Unix(1_800_000_000, 0)
	for i := range 20 {
		r := recheck.Result{At: at.Add(time.Duration(i) * time.Hour), Directions: []recheck.Direction{
			{Name: "up", GoodputBps: 1e8 + float64(i), RTTMin: 40 * time.Millisecond, Limiter: "bottleneck"}}}
		d.Add(r)
		m.Add(recheck.Visit{Peer: "far", At: r.At, Result: &r, Path: d,
			Events: []record.RecheckEvent{{Event: changepoint.Dipped, Metric: "goodput"}}})
	}
	return written(t, func(out *bytes.Buffer) error { return m.Write(out, false, "v") })
}

func fleetMetrics(t *testing.T) string {
	s := fleetSite(t, 8)
	lead := must.Get(s.cfg.Fleet.Store.TakeLead(t.Context(), "one", time.Hour))(t)
	open := incident.Incident{ID: "1", Cause: incident.Cause{Kind: incident.OneHost, ID: "id000"},
		Symptoms: []incident.Symptom{incident.Away}, OpenedAt: time.Now()}
	must.Do(t, s.cfg.Fleet.Store.SaveDecision(t.Context(), lead,
		incident.Decision{Incidents: []incident.Incident{open}}, nil, time.Now()))
	answer := ask(s, "GET", "/metrics", func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+fleetAdmin)
	})
	if answer.Code != http.StatusOK {
		t.Fatal(answer.Code)
	}
	return answer.Body.String()
}
