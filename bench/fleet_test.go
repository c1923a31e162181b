//go:build linux

package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/fleet/agent"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	documents "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store/pgtest"
)

// swarm is agents without network tests: each takes orders and delivers a document after a short time.
type swarm struct {
	t            *testing.T
	token        bus.Token
	made, stored atomic.Int64
	connected    atomic.Int64
	mu           sync.Mutex
	outbox       map[string]map[string][]byte // agent → run → document
	delivering   map[string]*sync.Mutex       // by agent: it delivers one result at a time
	work         sync.WaitGroup
	conns        []*bus.Conn
}

// Mesh files of 1,000 agents.
const (
	nobodysMesh = "[limits]\nmost-full = 0.6\n"
	// slowMesh gives 1.1 results a second: twelve agents test each other once a minute.
	slowMesh = "[task.t]\nbetween = [\"swarm-?\", \"swarm-10\", \"swarm-11\"]\nevery = \"1m\"\ntime = \"100ms\"\n" +
		"most = \"1MB\"\n"
	// swarmMesh gives 100 results a second: each agent tests six others once a minute.
	swarmMesh = "[task.t]\nbetween = [\"*\"]\nneighbours = 6\nevery = \"1m\"\ntime = \"100ms\"\nmost = \"1MB\"\n"
)

// TestBankFleet runs 1,000 agents at 1 and at 100 results a second, and kills the hub once. All results that were made
// are stored. The rows are the hub's memory and CPU.
func TestBankFleet(t *testing.T) {
	bankOnly(t)
	bankFleet(t, "SQLite", "")
}

// TestBankFleetPostgres does the same with PostgreSQL. The memory and CPU of its server do not count.
func TestBankFleetPostgres(t *testing.T) {
	bankOnly(t)
	bankFleet(t, "PostgreSQL", pgtest.StartDurable(t).URL(t))
}

func bankFleet(t *testing.T, database, url string) {
	const agents = 1000
	dir := t.TempDir()
	hub := harness.HubProgram(t)
	env := append(os.Environ(), "FULLPIPE_STATE="+dir, "FULLPIPE_HUB_STORE="+url)
	apply := func(mesh string) {
		file := filepath.Join(dir, "mesh.toml")
		if err := os.WriteFile(file, []byte(mesh), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(hub, "mesh", "apply", file)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	apply(nobodysMesh)
	port := harness.FreePort(t)
	center := startHub(t, hub, env, port)
	cmd := exec.Command(hub, "token", "--uses", strconv.Itoa(agents))
	cmd.Env = env
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	token, err := bus.ParseToken(string(out))
	if err != nil {
		t.Fatal(err)
	}
	s := &swarm{t: t, token: token, outbox: map[string]map[string][]byte{},
		delivering: map[string]*sync.Mutex{}}
	began := time.Now()
	for i := range agents {
		s.join(filepath.Join(t.TempDir(), strconv.Itoa(i)), i)
	}
	t.Logf("%d agents joined in %v", agents, time.Since(began))
	idle := s.load(center, 20*time.Second)
	apply(slowMesh)
	time.Sleep(15 * time.Second)
	slow := s.load(center, 40*time.Second)
	apply(swarmMesh)
	length := bankTime(t, time.Minute)
	time.Sleep(length / 2)
	busy := s.load(center, 20*time.Second)
	center.kill()
	time.Sleep(3 * time.Second)
	center = startHub(t, hub, env, port)
	time.Sleep(length / 2)
	apply(nobodysMesh)
	s.drain()
	stored := center.count(t, hub, env)
	t.Logf("%s: idle %v; slow %v; busy %v; %d made, %d stored", database, idle, slow, busy, s.made.Load(), stored)
	if int64(stored) != s.made.Load() {
		t.Errorf("%d results were made, %d are stored", s.made.Load(), stored)
	}
	record(t, bankRow{Section: "fleet", Case: "hub with 1,000 agents at 1 result/s, " + database,
		Claim: "at most 250 MB and 10 % of a core", Command: "make bank RUN=" + t.Name(),
		Measured: slow.String(), Spread: "idle " + idle.String(),
		Verdict: byInterval(slow.memory <= 250<<20 && slow.cpu <= 0.1, true)})
	record(t, bankRow{Section: "fleet", Case: "hub with 1,000 agents at 100 results/s, killed once, " + database,
		Claim: "at most 250 MB; each result stored once", Command: "make bank RUN=" + t.Name(),
		Measured: fmt.Sprintf("%v; %d made, %d stored", busy, s.made.Load(), stored),
		Verdict:  byInterval(busy.memory <= 250<<20 && int64(stored) == s.made.Load(), true)})
	for _, conn := range s.conns {
		conn.Close()
	}
	s.work.Wait()
}

// load is the load of a hub.
type load struct {
	rate   float64 // results a second
	memory int64   // bytes
	cpu    float64 // cores
}

func (l load) String() string {
	return fmt.Sprintf("%d MB, %.1f %% of a core, %.1f results/s", l.memory>>20, 100*l.cpu, l.rate)
}

// load measures a hub for some time.
func (s *swarm) load(center *hubProcess, length time.Duration) load {
	s.t.Helper()
	cpu := center.cpu(s.t)
	stored := s.stored.Load()
	time.Sleep(length)
	return load{rate: float64(s.stored.Load()-stored) / length.Seconds(), memory: center.resident(s.t),
		cpu: (center.cpu(s.t) - cpu).Seconds() / length.Seconds()}
}

// hubProcess is a running hub.
type hubProcess struct{ cmd *exec.Cmd }

func startHub(t *testing.T, program string, env []string, port string) *hubProcess {
	t.Helper()
	cmd := exec.Command(program, "serve", "--json", "--listen", "127.0.0.1:"+port, "--page", "")
	cmd.Env = env
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	harness.StartCommand(t, cmd)
	lines := bufio.NewReader(out)
	if _, err := lines.ReadBytes('\n'); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = lines.WriteTo(discard{}) }()
	return &hubProcess{cmd}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func (h *hubProcess) kill() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}

// resident returns the hub's resident memory in bytes.
func (h *hubProcess) resident(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", h.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// cpu returns the hub's CPU time.
func (h *hubProcess) cpu(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", h.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// count returns the number of stored results.
func (h *hubProcess) count(t *testing.T, program string, env []string) int {
	t.Helper()
	cmd := exec.Command(program, "runs", "--json", "--state", "done", "--limit", "1000000")
	cmd.Env = env
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Runs []struct{ ID string } }
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	return len(doc.Runs)
}

// join adds an agent.
func (s *swarm) join(dir string, i int) {
	s.t.Helper()
	name := fmt.Sprintf("swarm-%d", i)
	state, key, err := agent.Join(s.t.Context(), dir, s.token, bus.JoinRequest{Name: name})
	if err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	s.outbox[state.ID] = map[string][]byte{}
	s.delivering[state.ID] = &sync.Mutex{}
	s.mu.Unlock()
	s.connect(state, key, i)
}

func (s *swarm) connect(state agent.State, key nkeys.KeyPair, i int) {
	s.t.Helper()
	var conn *bus.Conn
	ready := make(chan struct{})
	hello := func() {
		<-ready
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		var welcome bus.Welcome
		address := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		_ = conn.Ask(ctx, bus.HelloKind, bus.Hello{V: bus.Version, Addresses: []netip.Addr{address}, Port: 5201,
			ClockNs: time.Now().UnixNano()}, &welcome)
		s.connected.Add(1)
		s.deliver(conn, state.ID)
	}
	dialer := bus.Dialer{Agent: state.ID, Key: key, URLs: state.URLs, TLS: bus.PinnedTLS(state.Pin),
		Connected: func() { go hello() }, Lost: func(error) {}}
	var err error
	conn, err = dialer.Dial()
	if err != nil {
		s.t.Fatal(err)
	}
	close(ready)
	err = conn.Serve(bus.OrderKind, func(data []byte) any {
		var o bus.Order
		if bus.Decode(data, &o) == nil && o.Role == bus.RoleTest {
			s.work.Go(func() { s.test(conn, state.ID, o) })
		}
		return bus.OrderReply{Port: 5201}
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.conns = append(s.conns, conn)
	go func() {
		for s.t.Context().Err() == nil {
			_ = conn.Send(bus.HereKind, bus.Here{V: bus.Version, ClockNs: time.Now().UnixNano()}) // away until the next
			time.Sleep(bus.HereEvery)
			s.deliver(conn, state.ID) // again after a failure
		}
	}()
}

// test makes a document of the usual size.
func (s *swarm) test(conn *bus.Conn, id string, o bus.Order) {
	time.Sleep(2 * o.Spec.Time)
	bps := 1e8
	doc := &documents.Measure{Header: documents.Header{Schema: "fullpipe/measure/v1", Version: "swarm",
		StartedAt: time.Now().UTC(), Envelope: &documents.Envelope{ID: o.Run, TestID: o.Run, PathKey: o.PathKey,
			Origin: documents.Origin(o.Origin), Outcome: documents.Done, Labels: map[string]string{"task": o.Task}}},
		Peer: o.Far, Directions: []documents.Direction{
			{Direction: "up", GoodputBps: &bps, Streams: []documents.Stream{}, Warnings: []string{strings.Repeat("x", 8000)}},
			{Direction: "down", GoodputBps: &bps, Streams: []documents.Stream{}}}}
	encoded, err := documents.Encode(doc)
	if err != nil {
		s.t.Error(err)
		return
	}
	s.mu.Lock()
	s.outbox[id][o.Run] = encoded
	s.mu.Unlock()
	s.made.Add(1)
	s.deliver(conn, id)
}

// deliver sends what waits of an agent.
func (s *swarm) deliver(conn *bus.Conn, id string) {
	s.mu.Lock()
	one := s.delivering[id]
	s.mu.Unlock()
	one.Lock()
	defer one.Unlock()
	s.mu.Lock()
	waiting := make(map[string][]byte, len(s.outbox[id]))
	for run, doc := range s.outbox[id] {
		waiting[run] = doc
	}
	s.mu.Unlock()
	for run, doc := range waiting {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		var receipt bus.Receipt
		err := conn.AskRaw(ctx, bus.ResultKind, doc, &receipt)
		cancel()
		switch {
		case err != nil:
			return
		case receipt.Refused != "":
			s.t.Errorf("run %s was refused: %s", run, receipt.Refused)
		case !receipt.Stored:
			return
		}
		s.mu.Lock()
		if s.outbox[id][run] != nil {
			s.stored.Add(1)
		}
		delete(s.outbox[id], run)
		s.mu.Unlock()
	}
}

// drain delivers what waits until nothing does.
func (s *swarm) drain() {
	s.t.Helper()
	const enough = 5 // seconds: runs that were ordered before have ended
	empty := 0
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Second) {
		waiting := 0
		s.mu.Lock()
		for _, runs := range s.outbox {
			waiting += len(runs)
		}
		s.mu.Unlock()
		empty++
		if waiting > 0 {
			empty = 0
		}
		if empty == enough {
			return
		}
	}
	s.t.Error("results still wait")
}
