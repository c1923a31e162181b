//go:build linux

package fleet

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/store/pgtest"
)

// fleet is a hub and agents on hosts of their own, which are network namespaces on one bridge.
type fleet struct {
	t            *testing.T
	dir          string
	program, hub string
	join         string
	database     *pgtest.Server // nil: the hub's history is a file
	env          []string       // of the hub

	mu       sync.Mutex
	lines    []agentLine     // of all agents and hubs
	hubLines strings.Builder // of the hubs, as they printed them
	agents   []*process
	center   *process
}

// process is a program that may be killed and started again.
type process struct {
	name  string
	hub   bool
	start func() *exec.Cmd
	cmd   *exec.Cmd
	ended chan struct{}
}

// agentLine is a line of agent --json, or of serve --json.
type agentLine struct {
	agent      string
	Event      string    `json:"event"`
	Run        string    `json:"run"`
	Role       string    `json:"role"`
	Far        string    `json:"far"`
	Begin, End time.Time `json:"-"`
	Detail     string    `json:"detail"`
	BeginText  string    `json:"begin"`
	EndText    string    `json:"end"`
}

func (f *fleet) command(name string, args ...string) string {
	f.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		f.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// newFleet makes the namespaces, starts a hub and lets the agents join. database is where the hub keeps its history;
// nil: in a file.
func newFleet(t *testing.T, agents int, mesh string, database *pgtest.Server) *fleet {
	t.Helper()
	f := &fleet{t: t, dir: t.TempDir(), program: harness.Program(t), hub: harness.HubProgram(t), database: database}
	f.env = append(os.Environ(), "FULLPIPE_STATE="+f.dir+"/hub")
	if database != nil {
		f.env = append(f.env, "FULLPIPE_HUB_STORE="+database.URL(t))
	}
	f.command("mount", "-t", "tmpfs", "none", "/run")
	if err := os.Mkdir("/run/netns", 0o755); err != nil {
		t.Fatal(err)
	}
	f.command("ip", "link", "add", "br0", "type", "bridge")
	f.command("ip", "addr", "add", "10.77.0.1/16", "dev", "br0")
	f.command("ip", "link", "set", "br0", "up")
	if err := os.WriteFile(filepath.Join(f.dir, "agent.toml"), []byte(fleetLimits), 0o600); err != nil {
		t.Fatal(err)
	}
	f.center = f.newHub("hub", "10.77.0.1", f.env)
	f.begin(f.center)
	for i := range agents {
		name := fmt.Sprintf("h%d", i)
		f.addHost(name, fmt.Sprintf("10.77.1.%d/16", i+1))
		f.addAgent(name)
	}
	if err := os.WriteFile(f.dir+"/mesh.toml", []byte(mesh), 0o600); err != nil {
		t.Fatal(err)
	}
	f.ask("mesh", "apply", f.dir+"/mesh.toml")
	for _, a := range f.agents {
		f.begin(a)
	}
	return f
}

// fleetLimits are the agents' own.
const fleetLimits = "day-bytes = \"1TB\"\nday-time = \"20h\"\n"

// newHub returns a hub on an address of the bridge, which is not started yet.
func (f *fleet) newHub(name, address string, env []string) *process {
	return &process{name: name, hub: true, start: func() *exec.Cmd {
		cmd := exec.Command(f.hub, "serve", "--json", "--listen", address+":8443", "--page", "")
		cmd.Env = env
		return cmd
	}}
}

// addHost makes a namespace whose eth0 is on the bridge.
func (f *fleet) addHost(name, address string) {
	f.t.Helper()
	f.command("ip", "netns", "add", name)
	f.command("ip", "link", "add", "v"+name, "type", "veth", "peer", "name", "eth0", "netns", name)
	f.command("ip", "link", "set", "v"+name, "master", "br0", "up")
	f.command("ip", "-n", name, "addr", "add", address, "dev", "eth0")
	f.command("ip", "-n", name, "link", "set", "eth0", "up")
	f.command("ip", "-n", name, "link", "set", "lo", "up")
}

// addAgent adds the agent of a namespace, which is not started yet.
func (f *fleet) addAgent(name string) *process {
	a := &process{name: name, start: func() *exec.Cmd {
		cmd := exec.Command("ip", "netns", "exec", name, f.program, "agent", "--json", "--name", name, "--join", f.join,
			"--limits", filepath.Join(f.dir, "agent.toml"))
		cmd.Env = append(os.Environ(), "FULLPIPE_STATE="+filepath.Join(f.dir, name))
		return cmd
	}}
	f.agents = append(f.agents, a)
	return a
}

// ask runs a command of the hub on its database.
func (f *fleet) ask(args ...string) string {
	f.t.Helper()
	cmd := exec.Command(f.hub, args...)
	cmd.Env = f.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.t.Fatalf("fullpipe-hub %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// begin starts a process and collects its lines. A hub is awaited.
func (f *fleet) begin(p *process) {
	f.t.Helper()
	cmd := p.start()
	out, err := cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(f.dir, p.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	ended := make(chan struct{})
	ready := make(chan struct{})
	f.mu.Lock()
	p.cmd = cmd
	p.ended = ended
	f.mu.Unlock()
	go func() {
		defer close(ended)
		f.read(p, out, ready)
		_ = cmd.Wait() // killed
	}()
	if !p.hub {
		return
	}
	select {
	case <-ready:
	case <-time.After(60 * time.Second):
		f.t.Fatal("the hub is not ready")
	}
}

// read collects the lines of a process. ready is closed at the hub's first.
func (f *fleet) read(p *process, from io.Reader, ready chan struct{}) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		if p.hub {
			f.mu.Lock()
			f.hubLines.Write(append(lines.Bytes(), '\n'))
			f.mu.Unlock()
			var first struct{ Event, Join string }
			if json.Unmarshal(lines.Bytes(), &first) == nil && first.Event == "ready" {
				f.mu.Lock()
				f.join = first.Join
				f.mu.Unlock()
				close(ready)
			}
		}
		line := agentLine{agent: p.name}
		if json.Unmarshal(lines.Bytes(), &line) != nil {
			continue // cut by a kill
		}
		line.Begin, _ = time.Parse(time.RFC3339Nano, line.BeginText)
		line.End, _ = time.Parse(time.RFC3339Nano, line.EndText)
		f.mu.Lock()
		f.lines = append(f.lines, line)
		f.mu.Unlock()
	}
}

// events returns the agents' newest lines.
func (f *fleet) events() []agentLine {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.lines[max(len(f.lines)-30, 0):])
}

// kill ends a process with SIGKILL.
func (f *fleet) kill(p *process) {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// faultKind makes a fault and mends it.
type faultKind struct {
	name string
	make func(*rand.Rand)
}

func (f *fleet) faultKinds() []faultKind {
	pause := func(rng *rand.Rand, longest time.Duration) { time.Sleep(time.Duration(rng.Int64N(int64(longest)))) }
	agent := func(rng *rand.Rand) *process { return f.agents[rng.IntN(len(f.agents))] }
	restart := func(rng *rand.Rand, p *process) {
		f.kill(p)
		pause(rng, 2*time.Second)
		f.begin(p)
	}
	kinds := []faultKind{
		{"agent killed", func(rng *rand.Rand) { restart(rng, agent(rng)) }},
		{"hub killed", func(rng *rand.Rand) { restart(rng, f.center) }},
		{"uplink cut", func(rng *rand.Rand) {
			device := "v" + agent(rng).name
			f.command("ip", "link", "set", device, "down")
			pause(rng, 4*time.Second)
			f.command("ip", "link", "set", device, "up")
		}},
		{"hub stopped", func(rng *rand.Rand) {
			_ = f.center.cmd.Process.Signal(unix.SIGSTOP)
			pause(rng, 8*time.Second)
			_ = f.center.cmd.Process.Signal(unix.SIGCONT)
		}},
	}
	if f.database == nil {
		return kinds
	}
	return append(kinds, faultKind{"database killed", func(rng *rand.Rand) {
		f.database.Stop(f.t, "kill")
		pause(rng, 4*time.Second)
		f.database.Restart(f.t)
	}})
}

// job is a run as fullpipe-hub runs --json prints it.
type job struct{ ID, State, Reason string }

func (f *fleet) runs() (jobs []job) {
	f.t.Helper()
	var doc struct{ Runs []job }
	if err := json.Unmarshal([]byte(f.ask("runs", "--json", "--limit", "100000")), &doc); err != nil {
		f.t.Fatal(err)
	}
	return doc.Runs
}

const faultMesh = `
[site.west]
agents = ["h0", "h1"]
uplink = "west-wan"
[site.east]
agents = ["h2", "h3"]
uplink = "east-wan"
[link.west-wan]
[link.east-wan]
[task.throughput]
between = ["*"]
every = "1m"
time = "500ms"
most = "5MB"
`
