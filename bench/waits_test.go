//go:build linux

package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// waitProgram is a program that sends what it reads. In its commands $F is a file, $READ a command
// that writes to standard output, $OUT the sink and $IN a source of bytes, HOST:PORT each.
type waitProgram struct {
	name   string // that owns the connection
	target string // of why
	run    string // sends $F, or the output of $READ
	reads  string // the $READ of a file; "": run reads $F itself
	client string // of a server, which sends to it
	relay  string // sends what $IN gives; "": it cannot
}

// toSink sends standard input.
const toSink = "socat -u - TCP:$OUT"

// waitPrograms are ten programs that copy, as people use them.
var waitPrograms = []waitProgram{
	{name: "cat | socat", target: "socat", run: "$READ | " + toSink, reads: "cat $F"},
	{name: "dd | socat", target: "socat", run: "$READ | " + toSink, reads: "dd if=$F bs=64k status=none"},
	{name: "tar | socat", target: "socat", run: "$READ | " + toSink, reads: "tar -cf - -C / ${F#/}"},
	{name: "gzip | socat", target: "socat", run: "$READ | gzip -1 | " + toSink, reads: "cat $F",
		relay: "socat -u TCP:$IN - | gzip -1 | " + toSink},
	{name: "socat", target: "socat", run: "socat -u FILE:$F TCP:$OUT", relay: "socat -u TCP:$IN TCP:$OUT"},
	{name: "curl --upload", target: "curl", run: "curl -s -T $F telnet://$OUT", relay: ""},
	{name: "python", target: "python3", run: "python3 $D/copy.py $F $OUT", relay: "python3 $D/copy.py $IN $OUT"},
	{name: "nginx", target: "nginx", run: "nginx -p $D -c $D/nginx.conf",
		client: "curl -s -o /dev/null http://127.0.0.1:8081/file", relay: "nginx -p $D -c $D/nginx.conf"},
	{name: "http.server", target: "python3", run: "cd $D && python3 -m http.server 8081",
		client: "curl -s -o /dev/null http://127.0.0.1:8081/file"},
	{name: "rsync", target: "rsync", run: "rsync --daemon --no-detach --config=$D/rsyncd.conf",
		client: "rsync -W rsync://127.0.0.1:8082/d/file $D/copy"},
}

const copyProgram = `
import fcntl, os, socket, sys
def address(a): return (a.split(":")[0], int(a.split(":")[1]))
src = sys.argv[1]
read = open(src, "rb", 0).read if src.startswith("/") else socket.create_connection(address(src)).recv
out = socket.create_connection(address(sys.argv[2]))
lock = open(os.environ["L"], "w") if os.environ.get("L") else None
while True:
    if lock: fcntl.flock(lock, fcntl.LOCK_EX)
    b = read(65536)
    if lock: fcntl.flock(lock, fcntl.LOCK_UN)
    if not b: break
    out.sendall(b)
`

// waitCell is a program with a cause.
type waitCell struct {
	program *waitProgram
	cause   string // disk, quota, lock, peer, sleep or none
	kind    string // the right answer: the wait of most time; "": the program does not limit
}

func (c waitCell) String() string { return c.program.name + ", " + c.cause }

// waitCells are the valid pairs. A lock needs a program that takes one, a peer one that relays.
func waitCells() (all []waitCell) {
	for i := range waitPrograms {
		p := &waitPrograms[i]
		all = append(all, waitCell{p, "disk", "disk"}, waitCell{p, "quota", "quota"}, waitCell{p, "none", ""})
		if p.reads != "" || p.name == "python" {
			all = append(all, waitCell{p, "lock", "lock"})
		}
		if p.relay != "" || p.reads != "" {
			all = append(all, waitCell{p, "peer", "peer"})
		}
		if p.reads != "" {
			all = append(all, waitCell{p, "sleep", "sleep"})
		}
	}
	return all
}

// waitBench is what the cells share: files, control groups, the sink and the source.
type waitBench struct {
	dir, disk, cpu string
	device         string
	sink, source   net.Listener
	slow           atomic.Bool // the source
	program        string
}

func newWaitBench(t *testing.T) *waitBench {
	b := &waitBench{dir: t.TempDir(), program: harness.Program(t)}
	for _, err := range []error{
		os.WriteFile(b.dir+"/copy.py", []byte(copyProgram), 0o600),
		os.WriteFile(b.dir+"/nginx.conf", []byte("daemon off; user root; worker_processes 1; pid "+b.dir+"/nginx.pid;\n"+
			"error_log stderr; events {}\nhttp { access_log off; proxy_buffering off; sendfile on;\n"+
			"server { listen 127.0.0.1:8081; location / { root "+b.dir+"; }\n"+
			"location /relay { proxy_pass http://127.0.0.1:8084/; } } }\n"), 0o600),
		os.WriteFile(b.dir+"/rsyncd.conf", []byte("use chroot=no\nuid=root\ngid=root\naddress=127.0.0.1\n"+
			"port=8082\n[d]\npath="+b.dir+"\nread only=yes\n"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	sh(t, "head -c 192M /dev/urandom > "+b.dir+"/file; sync "+b.dir+"/file; chmod -R a+rX "+b.dir)
	var stat unix.Stat_t
	if err := unix.Stat(b.dir, &stat); err != nil {
		t.Fatal(err)
	}
	b.device = fmt.Sprintf("%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev))
	for _, g := range []struct {
		at   *string
		root string
	}{{&b.disk, "/sys/fs/cgroup/blkio"}, {&b.cpu, "/sys/fs/cgroup/cpu"}} {
		var err error
		*g.at, err = os.MkdirTemp(g.root, "fullpipe-bank-")
		if err != nil {
			t.Skip("control groups of version 1: ", err)
		}
		t.Cleanup(func() {
			for range 100 {
				if os.Remove(*g.at) == nil {
					return
				}
				time.Sleep(50 * time.Millisecond)
			}
			t.Errorf("%s is left", *g.at)
		})
	}
	b.sink = b.listen(t, "127.0.0.1:8083", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	b.source = b.listen(t, "127.0.0.1:8084", b.serve)
	sh(t, "tc qdisc add dev lo root tbf rate 80mbit burst 200kb limit 400kb")
	return b
}

func (b *waitBench) listen(t *testing.T, at string, serve func(net.Conn)) net.Listener {
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return l
}

// serve is the source: an endless HTTP response, slow or as fast as it goes.
func (b *waitBench) serve(c net.Conn) {
	_, err := io.WriteString(c, "HTTP/1.0 200 OK\r\n\r\n")
	block := make([]byte, 16<<10)
	for err == nil {
		_, err = c.Write(block)
		if b.slow.Load() {
			time.Sleep(20 * time.Millisecond) // 6.5 Mbit/s
		}
	}
}

func sh(t *testing.T, script string) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}

// start runs a script in its own session until the returned function ends it.
func (b *waitBench) start(t *testing.T, script string, env ...string) (stop func()) {
	t.Helper()
	cmd := exec.Command("bash", "-c", "echo $$ > "+b.disk+"/cgroup.procs; echo $$ > "+b.cpu+"/cgroup.procs; "+script)
	cmd.Env = append(os.Environ(), append(env, "D="+b.dir, "F="+b.dir+"/file", "OUT=127.0.0.1:8083",
		"IN=127.0.0.1:8084")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return sync.OnceFunc(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its session only
		_ = cmd.Wait()
	})
}

// begin makes the cause and starts the program. remove takes the cause away.
func (b *waitBench) begin(t *testing.T, c waitCell) (remove func()) {
	t.Helper()
	p := c.program
	set := func(file, value string) {
		if err := os.WriteFile(file, []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	remove = func() {}
	run := p.run
	reads := p.reads
	client := p.client
	var env []string
	lockFile := b.dir + "/lock"
	sh(t, "dd of="+b.dir+"/file oflag=nocache conv=notrunc,fdatasync count=0 status=none")
	if c.cause != "disk" {
		sh(t, "cat "+b.dir+"/file > /dev/null")
	}
	switch c.cause {
	case "disk":
		file := b.disk + "/blkio.throttle.read_bps_device"
		set(file, b.device+" 1000000")
		remove = func() { set(file, b.device+" 0") }
	case "quota":
		set(b.cpu+"/cpu.cfs_period_us", "100000")
		set(b.cpu+"/cpu.cfs_quota_us", "1000") // the least
		remove = func() { set(b.cpu+"/cpu.cfs_quota_us", "-1") }
	case "lock":
		reads = "while :; do flock " + lockFile + " dd if=$F bs=64k count=1 status=none; done"
		env = append(env, "L="+lockFile)
		holder := b.start(t, "while :; do flock "+lockFile+" sleep 0.3; sleep 0.01; done")
		t.Cleanup(holder)
		remove = holder
	case "peer":
		b.slow.Store(true)
		remove = func() { b.slow.Store(false) }
		reads = "curl -s -N http://$IN/"
		if p.relay != "" {
			run = p.relay
		}
		if client != "" {
			client = "curl -s -o /dev/null http://127.0.0.1:8081/relay"
		}
	case "sleep":
		fast := b.dir + "/fast"
		_ = os.Remove(fast) // of the cell before
		reads = "while :; do dd if=$F bs=64k count=1 status=none; test -e " + fast + " || sleep 0.1; done"
		remove = func() { touch(t, fast) }
	}
	if c.cause == "quota" || c.cause == "none" {
		if reads != "" {
			reads = "while :; do " + reads + "; done"
		}
	}
	run = strings.ReplaceAll(run, "$READ", "{ "+reads+"; }")
	t.Cleanup(b.start(t, run, env...))
	if client != "" {
		time.Sleep(time.Second)
		own := &waitBench{dir: b.dir, disk: "/sys/fs/cgroup/blkio", cpu: "/sys/fs/cgroup/cpu"}
		t.Cleanup(own.start(t, "while :; do "+client+"; rm -f $D/copy; sleep 0.1; done"))
	}
	return remove
}

func touch(t *testing.T, file string) {
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// waitAnswer is the result of why.
type waitAnswer struct {
	limiter, kind, confidence string
	share, unknown            float64
	err                       string
}

func (a waitAnswer) sure() bool {
	return a.kind != "" && a.kind != "unknown" && a.share > 0.5 && a.confidence != "low"
}

func (a waitAnswer) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %.0f %% %s %s", a.limiter, a.kind, 100*a.share, a.confidence, a.err))
}

// ask runs why, with eBPF or without the capabilities for it.
func (b *waitBench) ask(target string, withBPF bool) (a waitAnswer) {
	args := []string{b.program, "why", target, "--for", "6s", "--json"}
	if !withBPF {
		args = append([]string{"setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin"}, args...)
	}
	out, err := exec.Command(args[0], args[1:]...).Output()
	var doc struct {
		Connections []struct {
			Directions []struct {
				Limiter string
				Waits   []struct {
					Kind, Confidence string
					Share            float64
				}
			}
		}
	}
	if failed := json.Unmarshal(out, &doc); failed != nil || len(doc.Connections) == 0 {
		return waitAnswer{err: fmt.Sprint(err, " ", failed)}
	}
	d := doc.Connections[0].Directions[0]
	a.limiter = d.Limiter
	shares := map[string]float64{}
	for _, w := range d.Waits {
		shares[w.Kind] += w.Share
		if a.kind == "" || shares[w.Kind] > shares[a.kind] {
			a.kind = w.Kind
			a.confidence = w.Confidence
		}
	}
	a.share = shares[a.kind]
	a.unknown = shares["unknown"]
	return a
}

// moved returns the rate on the loopback in bit/s over a time.
func moved(t *testing.T, length time.Duration) float64 {
	read := func() (n float64) {
		text, err := os.ReadFile("/proc/net/dev") // bytes are the first figure of a device
		_, of, found := strings.Cut(string(text), "lo:")
		if err == nil && found {
			_, err = fmt.Sscan(of, &n)
		}
		if err != nil || !found {
			t.Fatal("no loopback: ", err)
		}
		return n
	}
	before := read()
	time.Sleep(length)
	return 8 * (read() - before) / length.Seconds()
}

// TestBankWaits runs ten programs with five causes and none, each judged with eBPF and without it.
// FULLPIPE_BANK_CELLS selects some by their names.
func TestBankWaits(t *testing.T) {
	bankOnly(t)
	if !testenv.Inside(t, unix.CLONE_NEWNET) {
		return
	}
	b := newWaitBench(t)
	var right, sureWrong [2]int
	n, gained, sure := 0, 0, 0
	for _, c := range waitCells() {
		if only := os.Getenv("FULLPIPE_BANK_CELLS"); only != "" && !strings.Contains(c.String(), only) {
			continue
		}
		t.Run(c.String(), func(t *testing.T) {
			remove := b.begin(t, c)
			time.Sleep(1500 * time.Millisecond)
			before := moved(t, 2*time.Second)
			var said [2]waitAnswer
			var both sync.WaitGroup
			for i := range said {
				both.Go(func() { said[i] = b.ask(c.program.target, i == 0) })
			}
			both.Wait()
			n++
			for i, a := range said {
				switch {
				case a.kind == c.kind:
					right[i]++
				case a.sure():
					sureWrong[i]++
				}
			}
			remove()
			time.Sleep(time.Second)
			after := moved(t, 3*time.Second)
			if a := said[0]; a.sure() && a.kind == c.kind {
				sure++
				if after >= 1.1*before {
					gained++
				}
			}
			t.Logf("with: %v; without: %v; %.1f → %.1f Mbit/s", said[0], said[1], before/1e6, after/1e6)
		})
	}
	claims := []struct {
		name  string
		least float64
	}{{"with eBPF", 0.9}, {"without eBPF", 0.75}}
	for i, claim := range claims {
		verdict := "fail"
		if float64(right[i]) >= claim.least*float64(n) && sureWrong[i] == 0 {
			verdict = "pass"
		}
		record(t, bankRow{Section: "Waits of a program", Case: claim.name,
			Claim:    fmt.Sprintf("%.0f %% right, none sure and wrong", 100*claim.least),
			Measured: fmt.Sprintf("%d of %d right", right[i], n), Spread: fmt.Sprintf("%d sure and wrong", sureWrong[i]),
			Verdict: verdict, Command: "fullpipe why PROGRAM"})
	}
	verdict := "fail"
	if gained == sure {
		verdict = "pass"
	}
	record(t, bankRow{Section: "Waits of a program", Case: "the cause is removed",
		Claim: "goodput rises by 10 % in each sure case", Measured: fmt.Sprintf("%d of %d", gained, sure),
		Spread: "one run a cell", Verdict: verdict, Command: "fullpipe why PROGRAM"})
}
