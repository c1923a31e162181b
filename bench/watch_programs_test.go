//go:build linux

package bench

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
)

// ordinary is a program with settings of its own, for causes that iperf3 cannot make: SIDE
// and then NAME=VALUE words.
const ordinary = `
import os, socket, sys, time
o = dict(w.split("=") for w in sys.argv[2:])
n = {k: int(float(o.get(k, 0))) for k in ("sndbuf", "rcvbuf", "read", "conns", "request", "write", "nodelay", "stop")}
def sized(s):
    if n["sndbuf"]: s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, n["sndbuf"])
    if n["rcvbuf"]: s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, n["rcvbuf"])
    if n["nodelay"]: s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s
if sys.argv[1] == "serve":
    s = sized(socket.socket()); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("0.0.0.0", 5201)); s.listen(64)
    while True:
        c, _ = s.accept()
        if os.fork(): c.close(); continue
        got, began, owed = 0, time.monotonic(), 0
        while True:
            d = c.recv(16384)
            if not d: os._exit(0)
            got += len(d); owed += len(d)
            if n["request"] and owed >= n["request"]: owed -= n["request"]; c.sendall(b"k")
            if n["read"]: time.sleep(max(0, got * 8 / n["read"] - (time.monotonic() - began)))
            if n["stop"] and got > n["stop"]: time.sleep(60)
all = []
for _ in range(max(n["conns"], 1)):
    s = sized(socket.socket()); s.connect((os.environ["FULLPIPE_FAR"], 5201)); all.append(s)
for s in all[1:]:
    if os.fork() == 0: all = [s]; break
s, end, block = all[0], time.monotonic() + 40, b"x" * (n["write"] or 65536)
while time.monotonic() < end:
    if n["request"]:
        if n["nodelay"]: s.sendall(b"x" * n["request"])
        else: s.sendall(b"x" * (n["request"] // 2)); s.sendall(b"x" * (n["request"] // 2))
        s.recv(1)
    else: s.sendall(block)
`

// watchedCause is a cause made by ordinary programs.
type watchedCause struct {
	name     string
	limiters []string // each is right
	subtype  string   // subtype that a right verdict must have; "": any
	path     string   // of the lab; rate and round trip are the link's unless it says them
	shaped   string   // at the sender before; $DEVICE is the link
	far      string   // the server, "" is iperf3's
	near     string   // the client, "" is iperf3's
	down     bool     // the far end sends
	port     int      // of the server; 0 is 5201
	bps      float64  // of the link; 0 is that of the link that all are scaled to
	settle   int      // for how many seconds it runs before anybody looks; 0 is 3
}

// pairOf are the two limiters that only the receiver can distinguish.
var pairOf = []string{"receiver-window", "receiver-application"}

// limitedShare is the share of a link that programs with a limit of their own use.
const limitedShare = 0.28

const (
	mine, theirs, client = "python3 $P serve", "python3 $P client", "iperf3 -c $FULLPIPE_FAR -t 40"
	deepQueue            = "queue=2bdp"
)

// watchedLink is the link that causes and programs are scaled to.
type watchedLink struct {
	bps float64
	rtt time.Duration
}

// drawWatchedLink draws a link of 10 to 40 Mbit/s and 10 to 120 ms, uniformly on a logarithmic scale.
func drawWatchedLink(r *rand.Rand) watchedLink {
	return watchedLink{math.Round(10*math.Pow(4, r.Float64())) * 1e6,
		time.Duration(math.Round(10*math.Pow(12, r.Float64()))) * time.Millisecond}
}

func (l watchedLink) String() string { return fmt.Sprintf("rate=%.0fbit,rtt=%v", l.bps, l.rtt) }

// share returns a share of the link's rate in bit/s, as programs and labs read it.
func (l watchedLink) share(of float64) string { return fmt.Sprintf("%.0f", of*l.bps) }

// bytes returns a share of the link's BDP.
func (l watchedLink) bytes(of float64) string { return fmt.Sprintf("%.0f", of*l.bps/8*l.rtt.Seconds()) }

// on sets the paths of causes to the link, except for those with a rate of their own.
func (l watchedLink) on(causes []watchedCause) []watchedCause {
	for i := range causes {
		if c := &causes[i]; !strings.HasPrefix(c.path, "rate=") {
			c.path, c.bps = l.String()+","+c.path, l.bps
		}
	}
	return causes
}

// watchedCauses are the causes of the capture bank, in proportion to the link, except for two that a program cannot
// create: a sender's own buffering rule, which belongs to a system, and a transfer that is over before anybody asks,
// which its end alone shows.
func watchedCauses(l watchedLink) []watchedCause {
	third := l.share(0.35)
	tbf := "tc qdisc add dev $DEVICE root tbf rate " + third + "bit burst 5000 limit 4mb"
	return l.on([]watchedCause{
		{name: "small send buffer", limiters: []string{"send-buffer"}, path: deepQueue, far: mine,
			near: theirs + " sndbuf=" + l.bytes(0.107)},
		{name: "fixed SO_RCVBUF", limiters: pairOf, path: deepQueue,
			far: mine + " rcvbuf=" + l.bytes(0.267), near: theirs},
		{name: "fixed SO_RCVBUF a little too small", limiters: pairOf, path: deepQueue,
			far: mine + " rcvbuf=" + l.bytes(0.533), near: theirs},
		{name: "fixed SO_RCVBUF on a path with jitter", limiters: pairOf,
			path: fmt.Sprintf("%s,jitter=%v", deepQueue, l.rtt/4), far: mine + " rcvbuf=" + l.bytes(0.267), near: theirs},
		{name: "fixed SO_RCVBUF, four streams", limiters: pairOf, path: deepQueue,
			far: mine + " rcvbuf=" + l.bytes(0.08), near: theirs + " conns=4"},
		{name: "no window scaling", limiters: []string{"receiver-window"}, path: deepQueue + ",strip=wscale"},
		{name: "slow reader", limiters: pairOf, path: deepQueue, far: mine + " read=" + l.share(0.3), near: theirs},
		{name: "writer with pauses", limiters: []string{"application"}, path: deepQueue,
			near: client + " -b " + l.share(0.3)},
		{name: "loss under cubic", limiters: []string{"congestion"}, path: deepQueue + ",up.loss=2%",
			near: client + " -C cubic"},
		{name: "loss under bbr", limiters: []string{"congestion"}, path: deepQueue + ",up.loss=25%",
			near: client + " -C bbr"},
		{name: "full link, deep queue", limiters: []string{"bottleneck"}, path: "queue=4bdp"},
		{name: "full link, queue of ten packets", limiters: []string{"bottleneck", "congestion"},
			path: "queue=10packets"},
		{name: "full link, shallow queue", limiters: []string{"bottleneck", "congestion"}, path: "queue=0.33bdp"},
		{name: "full link under bbr", limiters: []string{"bottleneck"}, path: deepQueue, near: client + " -C bbr"},
		{name: "full link, four streams", limiters: []string{"bottleneck"}, path: deepQueue, near: client + " -P 4"},
		{name: "full link, down", limiters: []string{"bottleneck"}, path: deepQueue, near: client + " -R", down: true},
		{name: "full link, full send buffer as well", limiters: []string{"bottleneck"}, path: "queue=6bdp", far: mine,
			near: theirs + " sndbuf=" + l.bytes(1.5)},
		{name: "full link, full small window as well", limiters: []string{"bottleneck"}, path: "queue=6bdp",
			far: mine + " rcvbuf=" + l.bytes(2.5), near: theirs},
		{name: "policer", limiters: []string{"congestion"}, path: deepQueue + ",up.police=" + third + "bit/40kB"},
		{name: "MTU black hole", limiters: []string{"mtu-black-hole"}, path: deepQueue + ",up.mtu=1400,up.icmp=drop",
			far: mine, near: theirs},
		{name: "starved acknowledgements", limiters: []string{"ack-path"},
			path: deepQueue + ",down.rate=" + l.share(0.0065) + "bit,down.queue=10kB"},
		{name: "Nagle with delayed ACK", limiters: []string{"nagle-delayed-ack"}, path: deepQueue,
			far: mine + " request=2000", near: theirs + " request=2000"},
		{name: "local shaper (tbf)", limiters: []string{"local-queue"}, path: deepQueue, shaped: tbf},
		{name: "local shaper (htb)", limiters: []string{"local-queue"}, path: deepQueue,
			shaped: "tc qdisc add dev $DEVICE root handle 1: htb default 1; " +
				"tc class add dev $DEVICE parent 1: classid 1:1 htb rate " + third + "bit burst 5000"},
		{name: "local shaper under bbr", limiters: []string{"local-queue"}, path: deepQueue, near: client + " -C bbr",
			shaped: tbf},
		{name: "paced socket", limiters: []string{"pacing"}, path: deepQueue, near: client + " --fq-rate " + third},
		{name: "paced socket under bbr", limiters: []string{"pacing"}, path: deepQueue,
			near: client + " --fq-rate " + third + " -C bbr"},
		{name: "CPU-bound sender", limiters: []string{"application", "cpu"}, path: "rate=100mbit,rtt=60ms,queue=1bdp",
			bps: 100e6, far: mine, near: theirs + " write=1 nodelay=1"},
	})
}

// watchedPrograms are programs as people run them, with their limiters.
func watchedPrograms(l watchedLink) []watchedCause {
	const far, long = "rate=200mbit,rtt=200ms,queue=1bdp", "rate=50mbit,rtt=80ms,queue=1bdp"
	const nginx, curl = "nginx -e stderr -p $D -c $D/nginx.conf", "curl -s -o /dev/null http://$FULLPIPE_FAR:5201/file"
	const rsync = "rsync --daemon --no-detach --port=5201 --config=$D/rsyncd.conf"
	const http2 = harness.ProgramVariable + "=http2-server " + harness.HTTP2WindowVariable + "=262144 $E"
	const http2Post = "while " + harness.ProgramVariable + "=http2-client " + harness.LineAddressVariable +
		"=$FULLPIPE_FAR $E; do :; done"
	application, link := []string{"application"}, []string{"bottleneck"}
	kilobytes := l.bps * limitedShare / 8 / 1000 // a second
	return l.on([]watchedCause{
		{name: "curl from nginx", limiters: link, path: deepQueue, far: nginx, near: curl, down: true},
		{name: "curl from nginx over a queue of two seconds", limiters: link, path: "queue=" + l.share(2./8) + "B",
			far: nginx, near: curl, down: true},
		{name: "curl --limit-rate from nginx", limiters: pairOf, path: deepQueue, far: nginx,
			near: fmt.Sprintf("%s --limit-rate %.0fk", curl, kilobytes), down: true},
		{name: "curl from nginx with limit_rate", limiters: application, path: deepQueue, far: nginx, down: true,
			near: "curl -s -o /dev/null http://$FULLPIPE_FAR:5201/limited"},
		{name: "curl from nginx with sndbuf=16k", limiters: []string{"send-buffer"}, path: deepQueue, far: nginx,
			down: true, port: 5202, near: "curl -s -o /dev/null http://$FULLPIPE_FAR:5202/file"},
		{name: "curl from Python's http.server", limiters: link, path: deepQueue, far: "cd $D; python3 -m http.server 5201",
			near: curl, down: true},
		{name: "a reader that has stopped", limiters: pairOf, path: deepQueue, far: mine + " stop=1000000", near: theirs},
		{name: "requests of 32 kB over 80 ms", limiters: application, subtype: "request-response", path: long, bps: 50e6,
			far: mine + " request=32000", near: theirs + " request=32000 nodelay=1"},
		{name: "requests of 100 kB over 200 ms", limiters: application, subtype: "request-response", path: far, bps: 200e6,
			far: mine + " request=100000", near: theirs + " request=100000 nodelay=1"},
		{name: "rsync to a daemon", limiters: link, path: deepQueue, far: rsync,
			near: "while rsync -W $D/www/part rsync://$FULLPIPE_FAR:5201/in/; do :; done"},
		{name: "rsync --bwlimit", limiters: application, path: deepQueue, far: rsync,
			near: fmt.Sprintf("rsync -W --bwlimit=%.0f $D/www/file rsync://$FULLPIPE_FAR:5201/in/", kilobytes)},
		{name: "rsync over ssh, far away", limiters: application, settle: 8, subtype: "program-window", path: far,
			bps: 200e6, far: "$SSHD", near: "PATH=$SSH:$PATH rsync -W $D/www/file far:$D/in/copy", port: 22},
		{name: "scp, far away", limiters: application, settle: 8, subtype: "program-window", path: far,
			bps: 200e6, far: "$SSHD",
			near: "PATH=$SSH:$PATH; scp -O -q -S $SSH/ssh $D/www/file far:$D/in/copy", port: 22},
		{name: "ssh, far away", limiters: application, settle: 8, subtype: "program-window", path: far,
			bps: 200e6, far: "$SSHD",
			near: "PATH=$SSH:$PATH ssh far 'cat >/dev/null' </dev/zero", port: 22},
		{name: "ssh on a slow link", limiters: link, path: deepQueue, far: "$SSHD",
			near: "PATH=$SSH:$PATH ssh far 'cat >/dev/null' </dev/zero", port: 22},
		{name: "HTTP/2 upload with a stream's window of 256 KiB", limiters: application, subtype: "program-window",
			path: "rate=100mbit,rtt=100ms,queue=1bdp", bps: 100e6, far: http2, near: http2Post, port: 8081},
		// Two writes of 8 MiB are in turn.
		{name: "SMB copy, far away", limiters: application, subtype: "request-response", settle: 8,
			path: "rate=500mbit,rtt=200ms,queue=1bdp", bps: 500e6, port: 445,
			far:  "smbd -F --no-process-group -s $D/smb.conf -l $D -p 445",
			near: `smbclient //$FULLPIPE_FAR/in -s $D/smb.conf -N -c "put $D/www/file copy"`},
	})
}

// needed skips a cause whose programs are not installed.
func (c *watchedCause) needed(t *testing.T) {
	t.Helper()
	for word, names := range map[string][]string{"iperf3": {"iperf3"}, "python3": {"python3"}, "nginx": {"nginx"},
		"curl": {"curl"}, "rsync": {"rsync"}, "$SSHD": {"ssh"}, "smbd": {"smbd", "smbclient"}} {
		for _, name := range names {
			if strings.Contains(cmp.Or(c.far, client)+cmp.Or(c.near, client), word) {
				if _, err := exec.LookPath(name); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// programsFiles writes the configuration files of the programs of one lab with such a link and returns their
// environment.
func programsFiles(t *testing.T, dir string, bps float64) []string {
	t.Helper()
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	os.Chmod(dir, 0o755)
	for _, name := range []string{"www", "in"} {
		os.Mkdir(filepath.Join(dir, name), 0o777)
		os.Chmod(filepath.Join(dir, name), 0o777)
	}
	for name, size := range map[string]int64{"www/file": 4 << 30, "www/limited": 4 << 30, "www/part": 256 << 20,
		"file": 4 << 30} {
		write(name, "", 0o644)
		if err := os.Truncate(filepath.Join(dir, name), size); err != nil {
			t.Fatal(err)
		}
	}
	write("ordinary.py", ordinary, 0o600)
	write("nginx.conf", fmt.Sprintf(`user root; daemon off; pid %[1]s/pid; error_log stderr; worker_processes 1; events {}
http { access_log off; sendfile on; client_body_temp_path %[1]s/1; proxy_temp_path %[1]s/2;
fastcgi_temp_path %[1]s/3; uwsgi_temp_path %[1]s/4; scgi_temp_path %[1]s/5;
server { listen 5201; root %[1]s/www; location /limited { limit_rate %.0[2]fk; } }
server { listen 5202 sndbuf=16k; root %[1]s/www; } }`, dir, limitedShare*bps/8/1000), 0o600)
	write("rsyncd.conf", fmt.Sprintf("reverse lookup = no\nuse chroot = no\nuid = root\ngid = root\n"+
		"pid file = %[1]s/rsyncd.pid\n[in]\npath = %[1]s/in\nread only = no\n", dir), 0o600)
	write("smb.conf", fmt.Sprintf(`[global]
map to guest = Bad User
guest account = root
log file = %[1]s/smb.log
private dir = %[1]s
lock directory = %[1]s
state directory = %[1]s
cache directory = %[1]s
pid directory = %[1]s
ncalrpc dir = %[1]s/ncalrpc
passdb backend = tdbsam:%[1]s/passdb.tdb
disable netbios = yes
server role = standalone server
load printers = no
[in]
path = %[1]s/in
guest ok = yes
guest only = yes
writable = yes
`, dir), 0o600)
	env := append(os.Environ(), "P="+filepath.Join(dir, "ordinary.py"), "D="+dir, "E="+os.Args[0])
	if _, err := os.Stat("/usr/sbin/sshd"); err == nil {
		site, sshd := harness.NewSSHFiles(t, net.IP(lab.FarAddr.AsSlice()).String(), 22)
		env = append(env, "SSHD="+sshd+" -D -e -f "+site.Path("sshd.conf"), "SSH="+site.Path("near"))
	}
	return env
}
