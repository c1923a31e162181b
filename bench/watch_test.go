//go:build linux

package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// manyConnections is a program with 20,000 connections, 500 of them sending all the time, and one that uses the
// processor time of others.
const manyConnections = `
import json, os, resource, selectors, signal, socket, subprocess, sys, time
PROCESSES, N, BUSY = 4, 5000, 125 # of each: a process may have 20,000 files on some hosts
resource.setrlimit(resource.RLIMIT_NOFILE, (N + 1000, N + 1000))
def serve():
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("0.0.0.0", 7000)); s.listen(4096)
    for _ in range(PROCESSES - 1):
        if os.fork() == 0: break
    poll, n = selectors.DefaultSelector(), 0
    s.setblocking(False)
    poll.register(s, selectors.EVENT_READ)
    while True:
        for key, _ in poll.select():
            if key.fileobj is not s:
                if not key.fileobj.recv(65536):
                    poll.unregister(key.fileobj); key.fileobj.close()
                continue
            try: c, _ = s.accept()
            except BlockingIOError: continue
            poll.register(c, selectors.EVENT_READ)
            n += 1
            if n >= N + 500: poll.unregister(s); break
def client(ready):
    for i in range(PROCESSES):
        if os.fork() == 0: break
    else:
        while not all(os.path.exists(ready + str(i)) for i in range(PROCESSES)): time.sleep(0.1)
        open(ready, "w").close()
        os.wait(); sys.exit(1)
    mine = [socket.create_connection((os.environ["FULLPIPE_FAR"], 7000)) for _ in range(N)]
    open(ready + str(i), "w").close()
    while True:
        for c in mine[:BUSY]: c.sendall(b"x" * 2000)
        time.sleep(0.1)
plain = ["setpriv", "--bounding-set=-all"] # no privilege
def spent(run, seconds=0, to=subprocess.DEVNULL):
    began = time.monotonic()
    p = subprocess.Popen(run, stdout=to)
    if seconds:
        signal.signal(signal.SIGALRM, lambda *_: p.send_signal(signal.SIGINT)); signal.alarm(seconds)
    views = [json.loads(line) for line in p.stdout or []]
    _, _, used = os.wait4(p.pid, 0)
    return {"cpu_s": used.ru_utime + used.ru_stime, "wall_s": time.monotonic() - began,
        "rss_kib": used.ru_maxrss}, views
def watched(way):
    run = way + [os.environ["F"], "watch", "--every", "2s"]
    used, _ = spent(run, 30)
    _, views = spent(run + ["--json"], 13, subprocess.PIPE)
    used["dump_s"], used["standing"] = min(v["dump_s"] for v in views[1:]), min(v["standing"] for v in views)
    used["moving"] = min(len(v["connections"]) + v.get("left_out", 0) for v in views[1:-1])
    return used
def measure():
    ss = [spent(["ss", "-tinH"])[0] for _ in range(5)]
    print(json.dumps({"ss_wall_s": min(s["wall_s"] for s in ss), "root": watched([]), "plain": watched(plain)}))
{"serve": serve, "client": lambda: client(sys.argv[2]), "measure": measure}[sys.argv[1]]()
`

// TestBankWatchCrowd bounds the cost of watching 20,000 connections, 500 of them busy.
func TestBankWatchCrowd(t *testing.T) {
	bankOnly(t)
	testenv.Need(t, testenv.Python, testenv.SS, testenv.Setpriv)
	program := harness.Program(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "crowd.py")
	if err := os.WriteFile(file, []byte(manyConnections), 0o600); err != nil {
		t.Fatal(err)
	}
	script := `until python3 -c "import os,socket; socket.create_connection((os.environ['FULLPIPE_FAR'], 7000))" 2>/dev/null
do sleep 0.1; done
python3 $CROWD client $CROWD.ready & client=$!
until test -e $CROWD.ready; do sleep 0.2; kill -0 $client; done
python3 $CROWD measure`
	cmd := exec.Command(program, "lab", "rate=1gbit,rtt=1ms", "--far", "python3 "+file+" serve", "--", "sh", "-euc",
		script)
	cmd.Env = append(os.Environ(), "F="+program, "CROWD="+file)
	out := harness.Output(t, cmd)
	type spent struct {
		CPU      float64 `json:"cpu_s"`
		Wall     float64 `json:"wall_s"`
		RSS      float64 `json:"rss_kib"`
		Dump     float64 `json:"dump_s"` // the fastest
		Standing int
		Moving   int
	}
	var got struct {
		SSWall      float64 `json:"ss_wall_s"` // the same
		Root, Plain spent
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	row := func(name, claim, measured string, ok bool) {
		record(t, bankRow{Section: "watch", Case: name, Claim: claim, Measured: measured, Verdict: passed(ok),
			Command: "make bank RUN=TestBankWatchCrowd"})
	}
	for _, one := range []struct {
		mode string
		spent
	}{{"as root, with eBPF", got.Root}, {"without privileges, by dumps", got.Plain}} {
		mode, s := one.mode, one.spent
		if s.Standing < 20_000 || s.Moving < 500 {
			t.Fatalf("%s: %+v", mode, s)
		}
		share, n := 100*s.CPU/s.Wall, float64(s.Standing)
		row("20,000 connections, 500 busy, "+mode+": processor", "at most 3 % of a core at a period of 2 s",
			fmt.Sprintf("%.2f %% over %.0f s, its start included", share, s.Wall), share <= 3)
		row("20,000 connections, 500 busy, "+mode+": memory", "at most 60 MB",
			fmt.Sprintf("%.0f MB at its largest", s.RSS*1024/1e6), s.RSS*1024 <= 60e6)
		row("20,000 connections, "+mode+": a reading of all beside ss -tinH",
			"a quarter of the time a connection, or less",
			fmt.Sprintf("%.2f µs, ss %.2f µs (the fastest of 5)", 1e6*s.Dump/n, 1e6*got.SSWall/n), s.Dump*4 <= got.SSWall)
	}
}
