//go:build linux

package bench

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
)

// legsPeers is a Python program with the ends of a proxy's two legs, and programs with two connections of their own:
// MODE ADDRESS PORT RATE, the rate in bit/s and 0 for none.
const legsPeers = `
import os, random, socket, sys, threading, time
mode, host, port, rate = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
head = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"
ask = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
def paced(step, began):
    moved = 0
    while True:
        n = step()
        if not n: return
        moved += n
        if rate: time.sleep(max(0, moved * 8 / rate - (time.monotonic() - began)))
def send(c, block=65536): paced(lambda: c.sendall(b"x" * block) or block, time.monotonic())
def read(c, block=65536): paced(lambda: len(c.recv(block)), time.monotonic())
def serve(work):
    s = socket.create_server((host, port), backlog=64)
    while True:
        c = s.accept()[0]
        threading.Thread(target=work, args=(c,), daemon=True).start()
def connect(h, p):
    while True:
        try: return socket.create_connection((h, p))
        except OSError: time.sleep(0.1)
if mode == "server": serve(lambda c: (c.recv(4096), c.sendall(head), send(c)))
if mode == "sink": serve(read)
if mode == "client": c = connect(host, port); c.sendall(ask); read(c)
if mode.startswith("both"):
    # A program that downloads from one host and uploads to another.
    a, b = connect(host, port), connect(sys.argv[5], int(sys.argv[6]))
    a.sendall(ask)
    up = float(sys.argv[7])
    threading.Thread(target=read, args=(a,), daemon=True).start()
    block = int(sys.argv[8])
    rate = up
    send(b, block)
`

// A legsCase is a proxy at the near end between the far end, at the end of the lab's path, and a third host at
// the near end's side.
type legsCase struct {
	program              string
	upstream             bool // the far end is the server, else the client
	path                 string
	serverBps, clientBps float64 // the programs' own limits; 0: none
}

func (c *legsCase) String() string {
	far := "client"
	if c.upstream {
		far = "upstream"
	}
	return fmt.Sprintf("%s, %s at %s, server %.3g, client %.3g Mbit/s", c.program, far, c.path, c.serverBps/1e6,
		c.clientBps/1e6)
}

// legsPrograms start a proxy at the near end: it listens on port 9000 and forwards to $HOST port 8000. The names are
// those that why is asked for.
var legsPrograms = map[string]string{
	"nginx":        "nginx -e stderr -p $D -c $D/nginx.conf",
	"haproxy":      "haproxy -f $D/haproxy.cfg",
	"socat":        "socat TCP-LISTEN:9000,fork,reuseaddr TCP:$HOST:8000",
	"ssh":          "PATH=$SSH:$PATH ssh -N -L 0.0.0.0:9000:127.0.0.1:8000 far",
	"sshd":         "$SSHD",
	"docker-proxy": "docker-proxy -proto tcp -host-ip 0.0.0.0 -host-port 9000 -container-ip $HOST -container-port 8000 3>/dev/null",
}

const legsThird = `
cd /proc/sys/net/ipv4; echo 4096 16384 67108864 >tcp_wmem; echo 4096 131072 67108864 >tcp_rmem; cd /
unshare -n sleep 600 & third=$!
until ip link add leg type veth peer name leg netns $third 2>/dev/null; do sleep 0.05; done
ip addr add 10.77.0.1/24 dev leg; ip link set leg up
at_third() { nsenter -t $third -n "$@"; }
at_third sh -c 'ip addr add 10.77.0.2/24 dev leg; ip link set leg up; ip link set lo up
cd /proc/sys/net/ipv4; echo 4096 16384 67108864 >tcp_wmem; echo 4096 131072 67108864 >tcp_rmem'
`

// seenLegs is the part of why's document that the test reads.
type seenLegs struct {
	Connections []struct {
		PID           int
		Local, Remote string
		Directions    []struct {
			seenByWatch
			Leg *struct{ Local, Remote, Direction string }
		}
	}
}

// joined returns the directions that are legs of another.
func (s *seenLegs) joined() (n int) {
	for _, c := range s.Connections {
		for _, d := range c.Directions {
			if d.Leg != nil {
				n++
			}
		}
	}
	return n
}

func (s *seenLegs) String() string {
	var text []string
	for _, c := range s.Connections {
		for _, d := range c.Directions {
			one := fmt.Sprintf("%s %s %v", d.Direction, c.Remote, &d.seenByWatch)
			if d.Leg != nil {
				one += " ↔ " + d.Leg.Remote
			}
			text = append(text, one)
		}
	}
	return strings.Join(text, "; ")
}

// run runs the case and returns what why says.
func (c *legsCase) run(t *testing.T, program string) (seen seenLegs) {
	t.Helper()
	dir, env := legsFiles(t)
	defer os.RemoveAll(dir)
	// The far end is the server for the upstream's path, else the client; the third host is the other.
	far := fmt.Sprintf("exec python3 $P client $FULLPIPE_NEAR 9000 %.0f", c.clientBps)
	third := fmt.Sprintf("at_third python3 $P server 10.77.0.2 8000 %.0f & ", c.serverBps)
	host := "10.77.0.2"
	wait := "until at_third ss -Hltn sport = :8000 | grep -q .; do sleep 0.1; done\n"
	start := legsPrograms[c.program] + " & "
	if c.upstream {
		far = fmt.Sprintf("exec python3 $P server 0.0.0.0 8000 %.0f", c.serverBps)
		third = fmt.Sprintf("at_third python3 $P client 10.77.0.1 9000 %.0f & ", c.clientBps)
		host = "$FULLPIPE_FAR"
		wait = `until python3 -c "import os,socket; socket.create_connection((os.environ['FULLPIPE_FAR'], 8000))" 2>/dev/null
do sleep 0.2; done
`
		if c.program == "ssh" {
			far = "$SSHD & " + far
		}
	} else if c.program == "ssh" {
		// The ssh client is at the far end, and sshd, which is asked about, at the near one.
		far = "PATH=$SSH:$PATH; until ssh -N -L 127.0.0.1:9000:10.77.0.2:8000 near; do sleep 0.3; done & " +
			strings.Replace(far, "$FULLPIPE_NEAR", "127.0.0.1", 1)
		start = legsPrograms["sshd"] + " & "
	}
	near := legsThird + "HOST=" + host + "\n" + third + "\n" + wait +
		`sed -i "s/HOST/$HOST/" $D/nginx.conf $D/haproxy.cfg` + "\nsleep 0.5\n(" + start + "wait) & \n" +
		"sleep 4\n$F why $TARGET --for 6s --json >$D/why\nkill $third\n"
	target := c.program
	if !c.upstream && c.program == "ssh" {
		target = "sshd"
	}
	runLegs(t, program, c.path, far, near, append(env, "TARGET="+target), dir, &seen)
	return seen
}

func runLegs(t *testing.T, program, path, far, near string, env []string, dir string, seen *seenLegs) {
	t.Helper()
	cmd := exec.Command(program, "lab", path, "--far", far, "--", "sh", "-c", near)
	cmd.Env = append(env, "F="+program)
	var failed strings.Builder
	cmd.Stderr = &failed
	err := cmd.Run()
	text, _ := os.ReadFile(filepath.Join(dir, "why"))
	if os.Getenv("FULLPIPE_LEGS_SHOW") != "" || json.Unmarshal(text, seen) != nil || len(seen.Connections) == 0 {
		t.Logf("%v: %.300s; %.6000s", err, text, failed.String())
	}
	json.Unmarshal(text, seen)
}

// legsFiles writes the programs' configuration files and returns their directory and environment.
func legsFiles(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "fp")
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(dir, 0o755)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("peers.py", legsPeers)
	write("nginx.conf", fmt.Sprintf(`user root; daemon off; pid %[1]s/pid; error_log stderr; worker_processes 2; events {}
http { access_log off; client_body_temp_path %[1]s/1; proxy_temp_path %[1]s/2;
fastcgi_temp_path %[1]s/3; uwsgi_temp_path %[1]s/4; scgi_temp_path %[1]s/5;
server { listen 9000; location / { proxy_pass http://HOST:8000; proxy_max_temp_file_size 0; } } }`, dir))
	write("haproxy.cfg", `defaults
 mode http
 timeout connect 5s
 timeout client 60s
 timeout server 60s
listen it
 bind :9000
 server up HOST:8000
`)
	env = append(os.Environ(), "P="+filepath.Join(dir, "peers.py"), "D="+dir)
	site, sshd := harness.NewSSHFiles(t, net.IP(lab.FarAddr.AsSlice()).String(), 22)
	edit := func(name string, change func(text string) string) {
		text, err := os.ReadFile(site.Path(name))
		if err == nil {
			err = os.WriteFile(site.Path(name), []byte(change(string(text))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	edit("sshd.conf", func(text string) string {
		return strings.Replace(text, "ListenAddress "+lab.FarAddr.String(), "ListenAddress 0.0.0.0", 1)
	})
	edit("ssh.conf", func(text string) string { return "Host near\n  HostName " + lab.NearAddr.String() + "\n" + text })
	return dir, append(env, "SSHD="+sshd+" -D -e -f "+site.Path("sshd.conf"), "SSH="+site.Path("near"))
}

func legsCases() (all []legsCase) {
	for _, p := range []string{"nginx", "haproxy", "socat", "ssh", "docker-proxy"} {
		for _, up := range []bool{true, false} {
			paths := []string{"rate=8mbit,rtt=40ms,queue=1bdp", "rate=25mbit,rtt=20ms,queue=2bdp",
				"rate=60mbit,rtt=10ms,queue=1bdp"}
			for _, path := range paths {
				all = append(all, legsCase{program: p, upstream: up, path: path})
			}
			slow := legsCase{program: p, upstream: up, path: "rate=100mbit,rtt=10ms,queue=1bdp"}
			if up {
				slow.serverBps = 15e6
			} else {
				slow.clientBps = 15e6
			}
			all = append(all, slow)
		}
	}
	return all
}

// TestBankWatchLegs asks why of proxies which of their legs limits, and of programs with two transfers of their own.
func TestBankWatchLegs(t *testing.T) {
	bankOnly(t)
	program := harness.Program(t)
	only := os.Getenv("FULLPIPE_LEGS")
	cases := legsCases()
	right, joined, ran := 0, 0, 0
	for i, c := range cases {
		if only != "" && !slices.Contains(strings.Split(only, ","), fmt.Sprint(i)) {
			continue
		}
		ran++
		seen := c.run(t, program)
		ok := c.right(&seen)
		if ok {
			right++
		}
		if seen.joined() > 0 {
			joined++
		}
		t.Logf("%d %v: %v: %s", i, &c, ok, &seen)
	}
	const command = "make bank RUN=TestBankWatchLegs"
	if ran > 0 {
		record(t, bankRow{Section: "watch", Case: "legs of proxies", Command: command,
			Claim:    "why names the leg that limits, in at least 38 of 40 proxies",
			Measured: fmt.Sprintf("%d of %d", right, ran), Spread: fmt.Sprintf("%d joined", joined),
			Verdict: passed(float64(right) >= 0.95*float64(ran))})
	}
}

// TestBankWatchLegsApart asks why of programs with two transfers of their own.
func TestBankWatchLegsApart(t *testing.T) {
	bankOnly(t)
	program := harness.Program(t)
	const labs, programs = 4, 10
	r := rand.New(rand.NewPCG(53, 1))
	wrong, moved := 0, 0
	for range labs {
		dir, env := legsFiles(t)
		defer os.RemoveAll(dir)
		far, near := "", legsThird
		for i := range programs {
			down := 1e6 * math.Pow(8, r.Float64())
			up := down
			switch i % 4 {
			case 1:
				up *= 1 + 0.01*r.NormFloat64()
			case 2:
				up *= 0.5 + r.Float64()
			}
			port := 8000 + i
			far += fmt.Sprintf("python3 $P server 0.0.0.0 %d %.0f &\n", port, down)
			near += fmt.Sprintf("at_third python3 $P sink 10.77.0.2 %d 0 &\n", port) +
				fmt.Sprintf("python3 $P both $FULLPIPE_FAR %d 0 10.77.0.2 %d %.0f %d & p%d=$!\n", port, port, up,
					1<<(10+r.IntN(7)), i)
		}
		near += "sleep 12\n"
		for i := range programs {
			near += fmt.Sprintf("$F why $p%[1]d --for 6s --json >$D/why.%[1]d & w%[1]d=$!\n", i)
		}
		for i := range programs {
			near += fmt.Sprintf("wait $w%d\n", i)
		}
		cmd := exec.Command(program, "lab", "rate=200mbit,rtt=10ms,queue=1bdp", "--far", far+"wait", "--", "sh", "-c",
			near+"kill $third")
		cmd.Env = append(env, "F="+program)
		if err := cmd.Run(); err != nil {
			t.Log(err)
		}
		for i := range programs {
			var seen seenLegs
			text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("why.%d", i)))
			if err != nil {
				t.Fatal(err)
			}
			if json.Unmarshal(text, &seen) == nil && len(seen.Connections) == 2 {
				moved++
			}
			if seen.joined() > 0 {
				wrong++
			}
			t.Logf("%d: %s", i, &seen)
		}
	}
	record(t, bankRow{Section: "watch", Case: "two transfers of one program",
		Claim: "why joins none of 40 programs' two connections", Measured: fmt.Sprintf("%d joined", wrong),
		Spread: fmt.Sprintf("%d of %d seen with both", moved, labs*programs), Verdict: passed(wrong == 0),
		Command: "make bank RUN=TestBankWatchLegsApart"})
}

// right reports whether the first direction is that of the far leg, and joined with the other.
func (c *legsCase) right(s *seenLegs) bool {
	if len(s.Connections) == 0 || len(s.Connections[0].Directions) == 0 {
		return false
	}
	want := "up"
	if c.upstream {
		want = "down"
	}
	first := &s.Connections[0].Directions[0]
	return first.Leg != nil && first.Direction == want &&
		strings.HasPrefix(s.Connections[0].Remote, lab.FarAddr.String()+":")
}
