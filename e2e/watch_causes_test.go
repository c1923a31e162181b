//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ordinary is a program with settings of its own, for causes that iperf3 cannot make: SIDE
// and then NAME=VALUE words.
const ordinary = `
import os, socket, sys, time
o = dict(w.split("=") for w in sys.argv[2:])
n = {k: int(float(o.get(k, 0))) for k in ("sndbuf", "rcvbuf", "read", "conns")}
def sized(s):
    if n["sndbuf"]: s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, n["sndbuf"])
    if n["rcvbuf"]: s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, n["rcvbuf"])
    return s
if sys.argv[1] == "serve":
    s = sized(socket.socket()); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("0.0.0.0", 5201)); s.listen(64)
    while True:
        c, _ = s.accept()
        if os.fork(): c.close(); continue
        got, began = 0, time.monotonic()
        while True:
            d = c.recv(16384)
            if not d: os._exit(0)
            got += len(d)
            if o.get("answer") and got % 2000 == 0: c.sendall(b"k")
            if n["read"]: time.sleep(max(0, got * 8 / n["read"] - (time.monotonic() - began)))
all = []
for _ in range(max(n["conns"], 1)):
    s = sized(socket.socket()); s.connect((os.environ["FULLPIPE_FAR"], 5201)); all.append(s)
for s in all[1:]:
    if os.fork() == 0: all = [s]; break
s, end = all[0], time.monotonic() + 25
while time.monotonic() < end:
    if o.get("answer"):
        s.sendall(b"x" * 1000); s.sendall(b"x" * 1000); s.recv(1)
    else: s.sendall(b"x" * 65536)
`

// watchedCause is a cause made by ordinary programs.
type watchedCause struct {
	name     string
	limiters []string // each is right
	path     string   // beside rate and round trip
	shaped   string   // at the sender before; $DEVICE is the link
	far      string   // the server, "" is iperf3's
	near     string   // the client
	down     bool     // the far end sends
}

// watchedCauses are on a link of 20 Mbit/s and 60 ms: 150 kB.
func watchedCauses() []watchedCause {
	const mine, theirs, client = "python3 $P serve", "python3 $P client", "iperf3 -c $FULLPIPE_FAR -t 25"
	deep := "queue=300kB"
	return []watchedCause{
		{name: "small send buffer", limiters: []string{"send-buffer"}, path: deep, far: mine,
			near: theirs + " sndbuf=16000"},
		{name: "fixed SO_RCVBUF", limiters: []string{"receiver-window", "receiver-application"}, path: deep,
			far: mine + " rcvbuf=40000", near: theirs},
		{name: "fixed SO_RCVBUF a little too small", limiters: []string{"receiver-window", "receiver-application"},
			path: deep, far: mine + " rcvbuf=80000", near: theirs},
		{name: "fixed SO_RCVBUF on a path with jitter", limiters: []string{"receiver-window", "receiver-application"},
			path: deep + ",jitter=15ms", far: mine + " rcvbuf=40000", near: theirs},
		{name: "fixed SO_RCVBUF, four streams", limiters: []string{"receiver-window", "receiver-application"}, path: deep,
			far: mine + " rcvbuf=12000", near: theirs + " conns=4"},
		{name: "no window scaling", limiters: []string{"receiver-window"}, path: deep + ",strip=wscale", near: client},
		{name: "slow reader", limiters: []string{"receiver-window", "receiver-application"}, path: deep,
			far: mine + " read=6e6", near: theirs},
		{name: "writer with pauses", limiters: []string{"application"}, path: deep, near: client + " -b 6M"},
		{name: "loss under cubic", limiters: []string{"congestion"}, path: deep + ",up.loss=2%", near: client + " -C cubic"},
		{name: "loss under bbr", limiters: []string{"congestion"}, path: deep + ",up.loss=25%", near: client + " -C bbr"},
		{name: "full link, deep queue", limiters: []string{"bottleneck"}, path: "queue=600kB", near: client},
		{name: "full link, queue of ten packets", limiters: []string{"bottleneck", "congestion"}, path: "queue=15kB",
			near: client},
		{name: "full link, shallow queue", limiters: []string{"bottleneck", "congestion"}, path: "queue=50kB", near: client},
		{name: "full link under bbr", limiters: []string{"bottleneck"}, path: deep, near: client + " -C bbr"},
		{name: "full link, four streams", limiters: []string{"bottleneck"}, path: deep, near: client + " -P 4"},
		{name: "full link, down", limiters: []string{"bottleneck"}, path: deep, near: client + " -R", down: true},
		{name: "full link, full send buffer as well", limiters: []string{"bottleneck"}, path: "queue=900kB", far: mine,
			near: theirs + " sndbuf=225000"},
		{name: "full link, full small window as well", limiters: []string{"bottleneck"}, path: "queue=900kB",
			far: mine + " rcvbuf=375000", near: theirs},
		{name: "policer", limiters: []string{"congestion"}, path: deep + ",up.police=7mbit/40kB", near: client},
		{name: "MTU black hole", limiters: []string{"mtu-black-hole"}, path: deep + ",up.mtu=1400,up.icmp=drop", far: mine,
			near: theirs},
		{name: "starved acknowledgements", limiters: []string{"ack-path"}, path: deep + ",down.rate=130kbit,down.queue=10kB",
			near: client},
		{name: "Nagle with delayed ACK", limiters: []string{"nagle-delayed-ack"}, path: deep, far: mine + " answer=1",
			near: theirs + " answer=1"},
		{name: "local shaper (tbf)", limiters: []string{"local-queue"}, path: deep, near: client,
			shaped: "tc qdisc add dev $DEVICE root tbf rate 7mbit burst 5000 limit 4mb"},
		{name: "local shaper (htb)", limiters: []string{"local-queue"}, path: deep, near: client,
			shaped: "tc qdisc add dev $DEVICE root handle 1: htb default 1; " +
				"tc class add dev $DEVICE parent 1: classid 1:1 htb rate 7mbit burst 5000"},
		{name: "local shaper under bbr", limiters: []string{"local-queue"}, path: deep, near: client + " -C bbr",
			shaped: "tc qdisc add dev $DEVICE root tbf rate 7mbit burst 5000 limit 4mb"},
		{name: "paced socket", limiters: []string{"pacing"}, path: deep, near: client + " --fq-rate 7M"},
		{name: "paced socket under bbr", limiters: []string{"pacing"}, path: deep, near: client + " --fq-rate 7M -C bbr"},
		{name: "a download by curl", limiters: []string{"bottleneck"}, path: deep, down: true,
			far:  "cd $D; truncate -s 1G file; python3 -m http.server 5201",
			near: "curl -s -o /dev/null http://$FULLPIPE_FAR:5201/file"},
	}
}

// seenByWatch is what `why` said at one end.
type seenByWatch struct {
	Limiter, Subtype, Confidence, Direction string
	Candidates                              []string
	Sampled                                 bool
	Bps                                     float64 `json:"goodput_bps"`
	Shares                                  map[string]float64
}

// once makes the cause and asks at both ends while it lasts.
func (c *watchedCause) once(t *testing.T, program string) (sender, receiver seenByWatch) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "ordinary.py")
	if err := os.WriteFile(file, []byte(ordinary), 0o600); err != nil {
		t.Fatal(err)
	}
	const grow = "cd /proc/sys/net/ipv4; echo 4096 16384 67108864 >tcp_wmem; echo 4096 131072 67108864 >tcp_rmem; cd /\n"
	server := c.far
	if server == "" {
		server = "iperf3 -s"
	}
	device := "DEVICE=$(ip -o route get $FULLPIPE_FAR | sed 's/.* dev //; s/ .*//')\n"
	far := grow + `(until test -e $D/go; do sleep 0.1; done
$F why :5201 --for 5s --json >$D/far.json 2>$D/far.err; touch $D/done) &
` + server
	near := grow + device + c.shaped + `
until python3 -c "import os,socket; socket.create_connection((os.environ['FULLPIPE_FAR'], 5201))" 2>/dev/null
do sleep 0.2; done
` + c.near + ` >$D/out 2>&1 & client=$!
sleep 3; touch $D/go
$F why :5201 --for 5s --json >$D/near.json 2>$D/near.err || true
until test -e $D/done; do sleep 0.1; done
kill $client; cat $D/*.err >&2`
	cmd := exec.Command(program, "lab", "rate=20mbit,rtt=60ms,"+c.path, "--far", far, "--", "sh", "-uc", near)
	cmd.Env = append(os.Environ(), "F="+program, "P="+file, "D="+dir)
	var failed strings.Builder
	cmd.Stderr = &failed
	if err := cmd.Run(); err != nil {
		t.Logf("%v: %s", err, failed.String())
	}
	read := func(name string) (seen seenByWatch) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err, failed.String())
		}
		var doc struct {
			Connections []struct{ Directions []seenByWatch }
		}
		if err := json.Unmarshal(text, &doc); err != nil || len(doc.Connections) == 0 ||
			len(doc.Connections[0].Directions) == 0 {
			t.Fatalf("%v: %s %s", err, text, failed.String())
		}
		return doc.Connections[0].Directions[0]
	}
	sender, receiver = read("near.json"), read("far.json")
	if c.down {
		sender, receiver = receiver, sender
	}
	return sender, receiver
}

// right says whether a verdict is; a link that is full is its limit whatever else was made.
func (c *watchedCause) right(s *seenByWatch) bool {
	return slices.Contains(c.limiters, s.Limiter) || s.Limiter == "bottleneck" && s.Bps >= 0.85*20e6
}

// TestBankWatchCauses makes causes by ordinary programs and has `why` look at them from
// outside, at the sender and at the receiver.
func TestBankWatchCauses(t *testing.T) {
	bankOnly(t)
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	var right, sure, sureReceiver, honest among
	var wrong []string
	for _, c := range watchedCauses() {
		t.Run(c.name, func(t *testing.T) {
			sender, receiver := c.once(t, program)
			t.Logf("sender %+v", sender)
			t.Logf("receiver %+v", receiver)
			right.count(c.right(&sender))
			sure.count(c.right(&sender) || sender.Confidence != "high")
			sureReceiver.count(c.right(&receiver) || receiver.Confidence != "high")
			open := receiver.Limiter == "unknown" || receiver.Limiter == "mixed"
			honest.count(c.right(&receiver) || open && slices.ContainsFunc(c.limiters, func(l string) bool {
				return slices.Contains(receiver.Candidates, l)
			}))
			if !c.right(&sender) {
				wrong = append(wrong, fmt.Sprintf("%s (%s)", c.name, sender.Limiter))
			}
		})
	}
	row := func(name, claim string, n among, least float64, spread ...string) {
		record(t, bankRow{Section: "watch", Case: name, Claim: claim, Measured: n.String(),
			Spread:  strings.Join(append([]string{n.interval()}, spread...), "; "),
			Verdict: n.verdict(least), Command: "make bank RUN=TestBankWatchCauses"})
	}
	row("causes by ordinary programs, seen at the sender", "right in at least 90 %", right, 0.9, wrong...)
	row("causes at the sender, wrong with high confidence", "in at most 1 %", sure, 0.99)
	row("causes at the receiver, wrong with high confidence", "in at most 1 %", sureReceiver, 0.99)
	row("causes at the receiver", "right, or open with the truth among the candidates, in 90 %", honest, 0.9)
}
