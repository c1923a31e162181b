package watch

import (
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/segments"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/turns"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func seen(program, remote string, bytes int64, limiter verdict.Name) Observed {
	return Observed{Connection: &Connection{Owner: Owner{Program: program},
		Snapshot: Snapshot{Local: netip.MustParseAddrPort("10.0.0.1:50000"),
			Remote: netip.MustParseAddrPort(remote)}}, Flows: []Flow{{Direction: transfer.Up, Bytes: bytes,
		RTT: 20 * time.Millisecond, Sampled: true,
		Verdict: verdict.Verdict{Limiter: limiter, Shares: verdict.Shares{limiter: 0.75, verdict.Unknown: 0.25}}}}}
}

var (
	metricLine = regexp.MustCompile(
		`^fullpipe_watch_[a-z_]+(\{[a-z]+="(?:[^"\\\n]|\\.)*"(?:,[a-z]+="(?:[^"\\\n]|\\.)*")*\})? [0-9.e+-]+$`)
	nameOf = regexp.MustCompile(`^[a-z_]+`)
)

// page renders and checks what every page has to be: lines of the format, each sample under
// its family, no series twice.
func page(t *testing.T, m *Metrics, open bool) map[string]string {
	t.Helper()
	var out strings.Builder
	if err := m.Write(&out, open, `dev "1"`); err != nil {
		t.Fatal(err)
	}
	series, families := map[string]string{}, map[string]string{}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i, line := range lines {
		if fields := strings.Fields(line); fields[0] == "#" {
			if fields[1] == "TYPE" {
				families[fields[2]] = fields[3]
			}
			if line == "# EOF" && (!open || i != len(lines)-1) {
				t.Errorf("line %d ends the page", i)
			}
			continue
		}
		if !metricLine.MatchString(line) {
			t.Errorf("not a sample: %q", line)
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		if _, twice := series[line[:at]]; twice {
			t.Errorf("twice: %s", line)
		}
		series[line[:at]] = line[at+1:]
		name := nameOf.FindString(line)
		family := name
		if families[family] == "" {
			for _, end := range []string{"_total", "_bucket", "_sum", "_count"} {
				family = strings.TrimSuffix(family, end)
			}
		}
		if families[family] == "" || open && families[family] == "counter" && !strings.HasSuffix(name, "_total") {
			t.Errorf("%s has no family", name)
		}
	}
	if open && lines[len(lines)-1] != "# EOF" {
		t.Error("no end")
	}
	return series
}

func TestMetrics(t *testing.T) {
	m := NewMetrics()
	for range 2 {
		m.Add(&View{Length: 2 * time.Second, Standing: 7, Lost: 3, Totals: Totals{Opened: 4}, Took: 5 * time.Millisecond,
			Connections: []Observed{seen("rsync", "192.0.2.7:22", 1000, verdict.Bottleneck), seen("rsync", "192.0.2.99:22", 500,
				verdict.Bottleneck)}})
	}
	const rsync = `program="rsync",unit="",network="192.0.2.0/24",port="22"`
	for _, open := range []bool{false, true} {
		got := page(t, m, open)
		for series, want := range map[string]string{
			`fullpipe_watch_limited_seconds_total{` + rsync + `,direction="up",limiter="bottleneck"}`: "6",
			`fullpipe_watch_sent_bytes_total{` + rsync + `}`:                                          "3000",
			`fullpipe_watch_rtt_seconds_bucket{` + rsync + `,le="0.01"}`:                              "0",
			`fullpipe_watch_rtt_seconds_bucket{` + rsync + `,le="0.025"}`:                             "4",
			`fullpipe_watch_rtt_seconds_count{` + rsync + `}`:                                         "4",
			`fullpipe_watch_connections`:                                                              "7",
			`fullpipe_watch_ends_dropped_total`:                                                       "3",
			`fullpipe_watch_build_info{version="dev \"1\""}`:                                          "1",
		} {
			if got[series] != want {
				t.Errorf("%s is %q, want %q", series, got[series], want)
			}
		}
	}
}

// TestMetrics_Requests gives ten requests, and stalls that each end owed.
func TestMetrics_Requests(t *testing.T) {
	var tracker turns.Tracker
	tracker.AtEnd(true, 33e6)
	p := turns.Packet{FromClient: true, Flags: turns.ACK, Payload: 200, Window: 65535}
	for range 11 {
		tracker.Add(&p)
		tracker.Add(&turns.Packet{At: p.At + 33e6, Flags: turns.ACK, Seq: p.Ack, Ack: p.Seq + 200, Payload: 400,
			Window: 65535})
		p.At += 500e6
		p.Seq += 200
		p.Ack += 400
	}
	tracker.Stalled[turns.Timeout][0].Count = 3 // of the server
	tracker.Stalled[turns.TailLossProbe][1].Count = 2
	const labels = `program="curl",unit="",network="192.0.2.0/24",port="443"`
	for _, client := range []bool{true, false} {
		m := NewMetrics()
		o := seen("curl", "192.0.2.7:443", 1000, verdict.Application)
		o.Turns = &segments.Requests{Summary: tracker.Summary, Client: client}
		m.Add(&View{Length: time.Second, Connections: []Observed{o}})
		server, other := "peer", "here"
		if !client {
			server, other = other, server
		}
		got := page(t, m, true)
		sum, err := strconv.ParseFloat(got[`fullpipe_watch_request_seconds_sum{`+labels+`}`], 64)
		if err != nil || math.Abs(sum-0.33) > 1e-6 {
			t.Errorf("%v, %v", sum, err)
		}
		for series, want := range map[string]string{
			`fullpipe_watch_request_seconds_bucket{` + labels + `,le="0.025"}`:                                 "0",
			`fullpipe_watch_request_seconds_bucket{` + labels + `,le="0.05"}`:                                  "10",
			`fullpipe_watch_request_seconds_count{` + labels + `}`:                                             "10",
			`fullpipe_watch_request_stalls_total{` + labels + `,cause="timeout",side="` + server + `"}`:        "3",
			`fullpipe_watch_request_stalls_total{` + labels + `,cause="tail-loss-probe",side="` + other + `"}`: "2",
		} {
			if got[series] != want {
				t.Errorf("%s is %q, want %q", series, got[series], want)
			}
		}
	}
}

// TestMetrics_PlacesOfLoss adds flows with drops of this host, and retransmissions for others.
func TestMetrics_PlacesOfLoss(t *testing.T) {
	sends := seen("rsync", "192.0.2.7:22", 1000, verdict.Bottleneck)
	sends.Flows[0].Losses = &transfer.Losses{Retransmits: true, Bytes: 1000, Places: []transfer.LossPlace{
		{Reason: "QDISC_DROP", Dropped: 900, Bytes: 600}, {Reason: "NEW_REASON", Dropped: 100, Bytes: 100},
		{Reason: "NETFILTER_DROP", Dropped: 500}}}
	receives := seen("rsync", "192.0.2.8:22", 1000, verdict.Bottleneck)
	receives.Flows[0].Direction = transfer.Down
	receives.Flows[0].Losses = &transfer.Losses{Places: []transfer.LossPlace{{Reason: "NETFILTER_DROP", Dropped: 70}}}
	m := NewMetrics()
	for range 2 {
		m.Add(&View{Length: time.Second, Connections: []Observed{sends, receives}})
	}
	got := page(t, m, true)
	for labels, want := range map[string]string{`"up",place="queue"`: "1200", `"up",place="other"`: "200",
		`"up",place="firewall"`: "", `"up",place="elsewhere"`: "600", `"down",place="firewall"`: "140"} {
		series := `fullpipe_watch_lost_bytes_total{program="rsync",unit="",network="192.0.2.0/24",port="22",direction=` +
			labels + "}"
		if got[series] != want {
			t.Errorf("%s is %q, want %q", series, got[series], want)
		}
	}
}

// TestGroupsAreBounded sends a thousand networks, then one of the first again.
func TestGroupsAreBounded(t *testing.T) {
	m := NewMetrics()
	for i := range 1000 {
		m.Add(&View{Length: time.Second, Connections: []Observed{seen("x\n\"\\\xff", fmt.Sprintf("10.%d.%d.1:443", i/250,
			i%250), 10,
			verdict.Application)}})
	}
	m.Add(&View{Length: time.Second, Connections: []Observed{seen("x\n\"\\\xff", "10.0.0.9:443", 10,
		verdict.Application)}})
	got := page(t, m, true)
	groups := 0
	for series := range got {
		if strings.HasPrefix(series, "fullpipe_watch_sent_bytes_total{") {
			groups++
		}
	}
	if groups != maxGroupsReported+1 || got[`fullpipe_watch_sent_bytes_total{program="other",unit="other",network="other",port="other"}`] != "8000" ||
		got[`fullpipe_watch_groups_folded_total`] != "800" ||
		got[`fullpipe_watch_sent_bytes_total{program="x\n\"\\�",unit="",network="10.0.0.0/24",port="443"}`] != "20" {
		t.Errorf("%d groups: %v", groups, got)
	}
}

func TestTheNetworkStaysUndivided(t *testing.T) {
	f := Flow{Direction: transfer.Up, Verdict: verdict.Verdict{Candidates: []verdict.Name{verdict.Congestion,
		verdict.Bottleneck, verdict.LocalQueue, verdict.Pacing}}}
	if got := limiterLabel(&f, verdict.Unknown); got != "network" {
		t.Error(got)
	}
	f.Direction = transfer.Down
	if got := limiterLabel(&f, verdict.Unknown); got != "unknown" {
		t.Error(got)
	}
}
