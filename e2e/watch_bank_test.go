//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// manyConnections is a program with 20,000 connections, of which 500 send all the time, and one that
// takes the processor time of others.
const manyConnections = `
import os, resource, selectors, signal, socket, subprocess, sys, time
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
def spent(run, seconds):
    began = time.monotonic()
    p = subprocess.Popen(run, stdout=subprocess.DEVNULL)
    if seconds:
        time.sleep(seconds); p.send_signal(signal.SIGINT)
    _, _, used = os.wait4(p.pid, 0)
    return {"cpu_s": used.ru_utime + used.ru_stime, "wall_s": time.monotonic() - began, "rss_kib": used.ru_maxrss}
def measure():
    import json
    f = os.environ["F"]
    ss = [spent(["ss", "-tinH"], 0) for _ in range(5)]
    look = subprocess.run([f, "watch", "--for", "4s", "--every", "2s", "--json"], stdout=subprocess.PIPE)
    doc = json.loads(look.stdout)
    print(json.dumps({"ss_cpu_s": min(s["cpu_s"] for s in ss), "ss_wall_s": min(s["wall_s"] for s in ss),
        "dump_s": doc["dump_s"], "standing": doc["standing"],
        "moving": len(doc["connections"]) + doc.get("left_out", 0),
        "watch": spent([f, "watch", "--every", "2s"], 30)}))
{"serve": serve, "client": lambda: client(sys.argv[2]), "measure": measure}[sys.argv[1]]()
`

// TestBankWatchCrowd bounds what watching 20,000 connections costs, 500 of them busy.
func TestBankWatchCrowd(t *testing.T) {
	bankOnly(t)
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"python3", "ss"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(err)
		}
	}
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
	var failed strings.Builder
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, failed.String())
	}
	var got struct {
		SSCPU    float64 `json:"ss_cpu_s"`
		SSWall   float64 `json:"ss_wall_s"`
		Dump     float64 `json:"dump_s"`
		Standing int
		Moving   int
		Watch    struct {
			CPU  float64 `json:"cpu_s"`
			Wall float64 `json:"wall_s"`
			RSS  float64 `json:"rss_kib"`
		}
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if got.Standing < 20_000 || got.Moving < 500 {
		t.Fatalf("%+v", got)
	}
	row := func(name, claim, measured string, holds bool) {
		verdict := "pass"
		if !holds {
			verdict = "fail"
		}
		record(t, bankRow{Section: "watch", Case: name, Claim: claim, Measured: measured, Verdict: verdict,
			Command: "go test -run TestBankWatchCrowd ./e2e"})
	}
	share := 100 * got.Watch.CPU / got.Watch.Wall
	row("20,000 connections, 500 busy: processor", "at most 3 % of a core at a period of 2 s",
		fmt.Sprintf("%.1f %% over %.0f s, its start included", share, got.Watch.Wall), share <= 3)
	row("20,000 connections, 500 busy: memory", "at most 60 MB",
		fmt.Sprintf("%.0f MB at its largest", got.Watch.RSS*1024/1e6), got.Watch.RSS*1024 <= 60e6)
	n := float64(got.Standing)
	row("20,000 connections: a dump beside ss -tinH", "a quarter of the time a connection, or less",
		fmt.Sprintf("%.2f µs, ss %.2f µs (the fastest of 5)", 1e6*got.Dump/n, 1e6*got.SSWall/n), got.Dump*4 <= got.SSWall)
}
