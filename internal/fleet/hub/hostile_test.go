package hub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

const hostileText = "x\x1b[2J\r\u202e\u2028<img src=x onerror=hurt()>\nFORGED"

// TestIntake_OneAgentsFlood checks that a flood takes a bounded part of the hub, and that other agents are served.
func TestIntake_OneAgentsFlood(t *testing.T) {
	ended := 0
	in := newIntake(func(string) { ended++ })
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	taken := 0
	for range 10_000 {
		if _, ok := in.accepts(bus.ResultKind, "flood", 1<<20, now); ok {
			taken++
		}
	}
	if taken != maxResults || in.bytes != maxResults<<20 {
		t.Errorf("%d results with %d bytes wait, want %d", taken, in.bytes, maxResults)
	}
	if ended != 9 {
		t.Errorf("its connection was ended %d times, want once for each 1,000 dropped messages", ended)
	}
	taken = 0
	for range 1000 {
		if _, ok := in.accepts(bus.HereKind, "flood", 100, now); ok {
			taken++
		}
	}
	if taken != messageBurst {
		t.Errorf("%d heartbeats were handled, want %d", taken, messageBurst)
	}
	done, ok := in.accepts(bus.ResultKind, "honest", 9000, now)
	if !ok {
		t.Fatal("another agent's result is dropped")
	}
	done()
	if _, ok := in.accepts(bus.HelloKind, "honest", 500, now); !ok {
		t.Error("another agent's hello is dropped")
	}
	if _, ok := in.accepts(bus.HelloKind, "honest", bus.MaxMessage+1, now); ok {
		t.Error("a message above the limit is handled")
	}
}

// TestIntake_ManyAgentsFlood checks the memory of results that wait, with all keys stolen.
func TestIntake_ManyAgentsFlood(t *testing.T) {
	in := newIntake(func(string) {})
	now := time.Now()
	var free []func()
	for i := range 1000 {
		if done, ok := in.accepts(bus.ResultKind, string(rune('a'+i)), 1<<20, now); ok {
			free = append(free, done)
		}
	}
	if len(free) != maxResultBytes>>20 {
		t.Errorf("%d MiB wait, want %d", len(free), maxResultBytes>>20)
	}
	for _, done := range free {
		done()
	}
	if in.bytes != 0 || len(in.results) != 0 {
		t.Errorf("%d bytes of %d agents remain", in.bytes, len(in.results))
	}
}

// TestRepliesTo checks that the hub, which may publish everywhere, replies to an agent's own inbox only.
func TestRepliesTo(t *testing.T) {
	for reply, want := range map[string]bool{bus.Inbox("anna") + ".x": true, "": false, bus.Inbox("anna"): false,
		bus.Inbox("bert") + ".x": false, bus.Down("bert", bus.OrderKind): false, bus.Down("anna", bus.StopKind): false,
		bus.Up("anna", bus.ResultKind): false, "$SYS.REQ.SERVER.PING": false} {
		if got := repliesTo(&nats.Msg{Reply: reply}, "anna"); got != want {
			t.Errorf("%q: %v, want %v", reply, got, want)
		}
	}
	if repliesTo(&nats.Msg{Reply: "_INBOX_.x"}, "") {
		t.Error("a message of no agent")
	}
}

// TestFailed_ByAnotherAgent checks that an agent cannot end the run of others.
func TestFailed_ByAnotherAgent(t *testing.T) {
	h := New(Config{})
	g := &run{near: "anna", failed: make(chan bus.Failed, 1)}
	h.runs["r"] = g
	for _, agent := range []string{"bert", "", "anna.x"} {
		receipt := h.Failed(agent, bus.Failed{Run: "r", Reason: mesh.FarError})
		if receipt.Refused == "" || len(g.failed) > 0 {
			t.Errorf("%q ended anna's run: %+v", agent, receipt)
		}
	}
	h.Failed("anna", bus.Failed{Run: "r", Reason: "anything", Detail: hostileText + strings.Repeat("x", 1<<20)})
	f := <-g.failed
	if f.Reason != mesh.FarError || len(f.Detail) > 1000 || strings.ContainsAny(f.Detail, "\x1b\n\r\u202e\u2028") {
		t.Errorf("%q %.300q", f.Reason, f.Detail)
	}
}

// figures sets the figures of a document's direction.
func figures(bytes int64, seconds, bps float64) func(m *record.Measure) {
	return func(m *record.Measure) {
		d := &m.Directions[0]
		d.Bytes = &bytes
		d.DurationS = &seconds
		d.GoodputBps = &bps
	}
}

// TestDecodeResult_Hostile checks that impossible documents are refused.
func TestDecodeResult_Hostile(t *testing.T) {
	bps := 1e8
	good := func() *record.Measure {
		up := record.Direction{Direction: "up", GoodputBps: &bps, Streams: []record.Stream{}}
		up.Limiter = verdict.Name("receiver-window")
		return &record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1", Version: "x", StartedAt: time.Now()},
			Peer: "far", Directions: []record.Direction{up}}
	}
	encoded, err := record.Encode(good())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeResult(encoded); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(m *record.Measure){
		"figures that agree":           figures(125e6, 2, 5e8),
		"without the first read":       figures(1e6, 0.5, 8e6),
		"of a moment, all in one read": figures(1e6, 1e-9, 0),
	} {
		m := good()
		change(m)
		encoded, err := record.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeResult(encoded); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(m *record.Measure){
		"three directions": func(m *record.Measure) {
			m.Directions = append(m.Directions, m.Directions[0], m.Directions[0])
		},
		"a petabit":                        func(m *record.Measure) { big := 1e15; m.Directions[0].GoodputBps = &big },
		"negative goodput":                 func(m *record.Measure) { small := -1.0; m.Directions[0].GoodputBps = &small },
		"a tenth of its bytes in its time": figures(125e6, 2, 5e7),
		"ten times its bytes in its time":  figures(125e6, 2, 5e9),
		"1.2 times, of a short direction":  figures(100e3, 0.1, 9.6e6),
		"limiter with markup":              func(m *record.Measure) { m.Directions[0].Limiter = "<b>x" },
		"limiter with escapes":             func(m *record.Measure) { m.Directions[0].Limiter = hostileText },
		"limiter of 1 MB": func(m *record.Measure) {
			m.Directions[0].Limiter = verdict.Name(strings.Repeat("a", 1<<20))
		},
	} {
		m := good()
		change(m)
		encoded, err := record.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeResult(encoded); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for name, data := range map[string][]byte{"nothing": nil, "garbage": []byte("{"), "another document": []byte(
		`{"schema":"fullpipe/plan/v1"}`), "2 MiB": bytes.Repeat([]byte(" "), 2<<20)} {
		if _, err := decodeResult(data); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestEvent_HostileText checks that texts of a document reach events as short lines.
func TestEvent_HostileText(t *testing.T) {
	job := store.Job{ID: "r", Task: "t", A: "a", B: "b", Near: "a"}
	e, ok := newEvent(job, record.RecheckEvent{Event: changepoint.Changed, Metric: "kernel", Before: hostileText,
		After: strings.Repeat("\u202ex", 1<<16)})
	if !ok {
		t.Fatal("no event")
	}
	text := e.Old + e.New
	if strings.Contains(text, "\n") || strings.ContainsAny(text, "\x1b\r\u202e\u2028") || len(text) > 2000 {
		t.Errorf("%.400q", text)
	}
}

// TestHello_Hostile checks that an agent's introduction is bounded.
func TestHello_Hostile(t *testing.T) {
	w := newWorld(t, 1, 1)
	defer w.fleet.Close()
	h := New(Config{Fleet: w.fleet, Orders: w})
	honest := bus.Hello{V: 1, Version: "1.0", Port: 5201, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
	if welcome := h.Hello(t.Context(), "id0", honest); welcome.Error != "" {
		t.Fatal(welcome.Error)
	}
	for name, change := range map[string]func(hello *bus.Hello){
		"version of 1 MB":     func(hello *bus.Hello) { hello.Version = strings.Repeat("v", 1<<20) },
		"kernel of 1 MB":      func(hello *bus.Hello) { hello.Kernel = strings.Repeat("v", 1<<20) },
		"10,000 addresses":    func(hello *bus.Hello) { hello.Addresses = make([]netip.Addr, 10000) },
		"label with markup":   func(hello *bus.Hello) { hello.Labels = map[string]string{"<b>": "x"} },
		"label of 1 MB":       func(hello *bus.Hello) { hello.Labels = map[string]string{"a": strings.Repeat("v", 1<<20)} },
		"a version of 9 bits": func(hello *bus.Hello) { hello.V = 511 },
	} {
		hello := honest
		change(&hello)
		if welcome := h.Hello(t.Context(), "id0", hello); welcome.Error == "" {
			t.Errorf("%s: taken", name)
		}
	}
	agents, err := w.fleet.Agents(t.Context())
	if err != nil || len(agents[0].Hello) > 1000 {
		t.Errorf("%d bytes are stored, %v", len(agents[0].Hello), err)
	}
}

// TestJoin_StolenToken checks the limits of a stolen token, and that only wrong tokens count towards the limits of
// their address.
func TestJoin_StolenToken(t *testing.T) {
	fleet, err := store.OpenFleet(t.Context(), t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer fleet.Close()
	now := time.Now()
	token := func(uses int, until time.Time, networks ...netip.Prefix) string {
		secret, err := NewToken(t.Context(), fleet, store.Enrolment{Uses: uses, Until: until, Networks: networks,
			Labels: map[string]string{"site": "berlin"}}, now)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	handler := JoinHandler(fleet, nil, func(store.Agent) {})
	ask := func(secret, name, from string) (int, bus.JoinReply) {
		key, err := nkeys.CreateUser()
		if err != nil {
			t.Fatal(err)
		}
		public, _ := key.PublicKey()
		body, _ := json.Marshal(bus.JoinRequest{Secret: secret, NKey: public, Name: name,
			Labels: map[string]string{"site": "frankfurt"}})
		r := httptest.NewRequest(http.MethodPost, bus.JoinPath, bytes.NewReader(body))
		r.RemoteAddr = from
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		var reply bus.JoinReply
		if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil {
			t.Fatal(err)
		}
		return w.Code, reply
	}
	once := token(1, now.Add(time.Hour))
	if status, reply := ask(once, "a", "192.0.2.1:1"); status != http.StatusOK {
		t.Fatalf("%d %s", status, reply.Error)
	}
	agents, err := fleet.Agents(t.Context())
	if err != nil || len(agents) != 1 || agents[0].Labels["site"] != "berlin" {
		t.Errorf("a token for berlin admitted a host of %v, %v", agents[0].Labels, err)
	}
	var said []string
	for name, secret := range map[string]string{"used": once, "expired": token(9, now.Add(-time.Second)),
		"unknown": "guess", "empty": "",
		"of another network": token(9, now.Add(time.Hour), netip.MustParsePrefix("10.0.0.0/8"))} {
		status, reply := ask(secret, "b", "192.0.2.1:1")
		if status != http.StatusForbidden || reply.ID != "" {
			t.Errorf("%s: %d %+v", name, status, reply)
		}
		said = append(said, reply.Error)
	}
	for _, one := range said {
		if one != said[0] {
			t.Errorf("a stranger learns why: %q, %q", one, said[0])
		}
	}
	good := token(9, now.Add(time.Hour))
	for name, host := range map[string]string{"markup": "<b>x", "escapes": "a\x1b[2J", "line": "a\nb", "empty": "",
		"path": "../x", "long": strings.Repeat("a", 100)} {
		if status, _ := ask(good, host, "192.0.2.1:1"); status != http.StatusBadRequest {
			t.Errorf("a name with %s: %d", name, status)
		}
	}
	guessed := map[int]int{}
	for range 500 {
		status, _ := ask("guess", "b", "192.0.2.7:1")
		guessed[status]++
	}
	if guessed[http.StatusForbidden] > wrongTokens+1 || guessed[http.StatusTooManyRequests] < 390 {
		t.Errorf("500 guesses of an address: %v", guessed)
	}
	if status, reply := ask(good, "c", "192.0.2.8:1"); status != http.StatusOK {
		t.Errorf("another address meanwhile: %d %s", status, reply.Error)
	}
	for i := range 6 {
		if status, reply := ask(good, fmt.Sprint("d", i), "192.0.2.7:1"); status != http.StatusOK {
			t.Errorf("right token %d of the guesser's address: %d %s", i, status, reply.Error)
		}
	}
}
