package recheck

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/hook"
	"github.com/fullpipe-net/fullpipe/internal/cli/settings"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/secret"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestWebhook(t *testing.T) {
	var mu sync.Mutex
	var asked int
	var body record.Recheck
	answer := http.StatusInternalServerError
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if asked++; asked > 1 {
			answer = http.StatusNoContent
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%v, %v", err, r.Header)
		}
		w.WriteHeader(answer)
	}))
	defer s.Close()
	var errs bytes.Buffer
	cmd := New()
	cmd.SetErr(&errs)
	f := &hook.Target{Webhook: s.URL, Pause: time.Millisecond}
	must.Do(t, f.Check())
	notify(t.Context(), cmd, f, record.Header{Schema: "fullpipe/recheck/v1"}, &record.RecheckEvent{Event: "dip", Far: "b",
		Text: "dip"})
	if asked != 2 || len(body.Events) != 1 || body.Events[0].Text != "dip" || errs.Len() > 0 {
		t.Errorf("asked %d times, %+v, %s", asked, body, errs.String())
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	defer gone.Close()
	f = &hook.Target{Webhook: gone.URL + "/secret", Pause: time.Millisecond}
	notify(t.Context(), cmd, f, record.Header{}, &record.RecheckEvent{Event: "dip"})
	if !strings.Contains(errs.String(), "404") || strings.Contains(errs.String(), "secret") {
		t.Error(errs.String())
	}
}

// TestOnChange_Timeout checks that neither a program that does not end nor its child process with the inherited stdout
// blocks recheck.
func TestOnChange_Timeout(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.Unix)
	for name, script := range map[string]string{"stays": "exec sleep 30", "leaves another": "sleep 30 & wait"} {
		program := filepath.Join(t.TempDir(), "on-change")
		started := filepath.Join(t.TempDir(), "started")
		text := "#!/bin/sh\necho started > " + started + "\n" + script + "\n"
		must.Do(t, os.WriteFile(program, []byte(text), 0o700))
		var errs bytes.Buffer
		cmd := New()
		cmd.SetErr(&errs)
		f := &hook.Target{Program: program, Limit: time.Second}
		notify(t.Context(), cmd, f, record.Header{}, &record.RecheckEvent{Event: "dip", Far: "b"})
		if _, err := os.Stat(started); err != nil || !strings.Contains(errs.String(), "did not end within 1s") {
			t.Errorf("%s: %v, %s", name, err, errs.String())
		}
	}
}

func TestFarHost(t *testing.T) {
	for peer, want := range map[string]string{"Far.example.net": "far.example.net",
		"fullpipe://far.example.net:5201": "far.example.net",
		"iperf3://[2001:db8::1]:5201":     "2001:db8::1", "ssh://me@far.example.net": "far.example.net",
		"https://far.example.net:8443/a@b": "far.example.net", "far:5201": "far", "2001:db8::1": "2001:db8::1"} {
		if got := farHost(peer); got != want {
			t.Errorf("%s: %s", peer, got)
		}
	}
}

// TestPlanNow compares the applied settings with those that the path needs after a change.
func TestPlanNow(t *testing.T) {
	target := must.Get(plan.ParseTarget("linux-6.18"))(t)
	was := "4096 131072 2097152"
	ours := []host.State{{JournalEntry: host.Record{Kind: host.Sysctl, Name: "net.ipv4.tcp_rmem", New: &was}, Is: "ours"}}
	values := map[string]string{"net.ipv4.tcp_rmem": was, "net.ipv4.tcp_wmem": was}
	for _, c := range []struct {
		bps  float64
		fits bool
	}{{100e6, true}, {50e6, true}, {400e6, false}} {
		fit := planNow(plan.Path{RateBps: c.bps, RTT: 40 * time.Millisecond, MSS: 1448}, target, transfer.Down, values, ours)
		if fit == nil || fit.Fits != c.fits || fit.WindowBytes < int(c.bps*0.04/8) || len(fit.Applied) != 1 ||
			!c.fits && (len(fit.Settings) != 1 || fit.Settings[0].Name != "net.ipv4.tcp_rmem") {
			t.Errorf("%v: %+v", c.bps, fit)
		}
	}
	window := "65536"
	ours = []host.State{{Is: "ours",
		JournalEntry: host.Record{Kind: host.Route, Name: "192.0.2.0/24 window", New: &window}}}
	fit := planNow(plan.Path{RateBps: 100e6, RTT: 40 * time.Millisecond, MSS: 1448}, target, transfer.Down, values, ours)
	if fit == nil || fit.Fits || fit.Settings[0].Name != "192.0.2.0/24 window" {
		t.Errorf("%+v", fit)
	}
}

// TestLock_PerFarHost checks that the lock depends on the far host, not on the protocol.
func TestLock_PerFarHost(t *testing.T) {
	k, other := &rechecker{dir: t.TempDir()}, &rechecker{}
	other.dir = k.dir
	unlock, err := k.lock("fullpipe://far.example.net:5201")
	if err != nil || unlock == nil {
		t.Fatalf("%v", err)
	}
	if again, err := other.lock("iperf3://Far.example.net"); err != nil || again != nil {
		t.Errorf("two tests at one far end: %v", err)
	}
	if another, err := other.lock("fullpipe://other.example.net"); err != nil || another == nil {
		t.Errorf("another far end: %v", err)
	}
	unlock()
	if again, err := other.lock("far.example.net"); err != nil || again == nil {
		t.Errorf("when the first is done: %v", err)
	}
}

// TestPeerOptions_PerFarEnd checks that the options of one far end in the configuration do not apply to another.
func TestPeerOptions_PerFarEnd(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "config.toml")
	text := `[far.a]
peer = "fullpipe://a.example.net"
key-file = "a.key"
[far.b]
peer = "fullpipe://b.example.net"
key-file = "b.key"
ipv6 = true
[recheck]
peers = ["a", "b", "a", "https://c.example.net/x"]
`
	must.Do(t, os.WriteFile(name, []byte(text), 0o600))
	t.Setenv(settings.Variable, name)
	t.Setenv(secret.Key, "")
	cmd := New()
	cmd.SetContext(t.Context())
	file, _, err := settings.Read(cmd)
	if err != nil {
		t.Fatal(err)
	}
	f := &flags{}
	f.Direction = "both"
	fars, err := f.resolve(cmd, file, file.Recheck.Peers)
	if err != nil || len(fars) != 3 {
		t.Fatalf("%d far ends, %v", len(fars), err)
	}
	if a, b, c := fars[0], fars[1], fars[2]; a.flags.File != filepath.Join(dir, "a.key") || a.flags.Only6 ||
		b.flags.File != filepath.Join(dir, "b.key") || !b.flags.Only6 || c.flags.File != "" ||
		strings.Join(b.sends, " ") != "up down" || strings.Join(c.sends, " ") != "down" {
		t.Errorf("%+v, %+v, %+v", a, b, c)
	}
	if one, two := seriesOfFar("h", fars[0], 3e9), seriesOfFar("h", fars[0], 5e9); one == two {
		t.Error("a longer transfer is another series")
	}
}

// TestRecheckSeries_ContinuesStoredHistories: a result that was stored before keys were computed from values has the
// key that its command line leads to now.
func TestRecheckSeries_ContinuesStoredHistories(t *testing.T) {
	text := must.Get(os.ReadFile("../testdata/series_v1.jsonl"))(t)
	found := 0
	for line := range strings.Lines(string(text)) {
		doc := must.Get(record.Decode([]byte(line), nil))(t)
		e := doc.Head().Envelope
		args, is := strings.CutPrefix(e.Labels["args"], "recheck ")
		if !is {
			continue
		}
		found++
		cmd, f := command()
		must.Do(t, cmd.ParseFlags(strings.Fields(args)))
		far := &recheckFar{address: record.Summarize(doc).Far, flags: f.PeerFlags}
		if key := seriesOfFar(e.HostID, far, f.time); key != e.PathKey {
			t.Errorf("%s: key %s, its history has %s", args, key, e.PathKey)
		}
	}
	if found == 0 {
		t.Error("no result of recheck")
	}
}
