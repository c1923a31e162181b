//go:build linux

package e2e

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// hostile is one way of a stranger to be slow, silent, half open, flooding or senseless.
// It holds its connection until over closes, unless the server ends it first.
type hostile struct {
	name string
	act  func(conn *net.TCPConn, over <-chan struct{})
}

func hostilities() []hostile {
	noise := make([]byte, 1<<16)
	rand.Read(noise)
	opens := func(params string) []byte {
		c := iperf3.NewCookie()
		return append(binary.BigEndian.AppendUint32(c[:], uint32(len(params))), params...)
	}
	says := func(text []byte) func(*net.TCPConn, <-chan struct{}) {
		return func(c *net.TCPConn, over <-chan struct{}) { c.Write(text); <-over }
	}
	drips := func(text []byte) func(*net.TCPConn, <-chan struct{}) {
		return func(c *net.TCPConn, over <-chan struct{}) {
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for _, b := range text {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				select {
				case <-tick.C:
				case <-over:
					return
				}
			}
			<-over
		}
	}
	floods := func(first []byte) func(*net.TCPConn, <-chan struct{}) {
		return func(c *net.TCPConn, over <-chan struct{}) {
			c.SetDeadline(time.Now().Add(time.Second))
			for _, err := c.Write(first); err == nil; _, err = c.Write(noise) {
				select {
				case <-over:
					return
				default:
				}
			}
		}
	}
	long := `{"tcp":true,"time":60,"parallel":16}`
	return []hostile{
		{"silent", says(nil)},
		{"slow", drips(opens(long))},
		{"slow with our marker", drips(append(probe.Marker[:], noise[:300]...))},
		{"half open", func(c *net.TCPConn, over <-chan struct{}) { c.Write(noise[:10]); c.CloseWrite(); <-over }},
		{"half open test", func(c *net.TCPConn, over <-chan struct{}) { c.Write(opens(long)); c.CloseWrite(); <-over }},
		{"reset", func(c *net.TCPConn, _ <-chan struct{}) { c.SetLinger(0) }},
		{"garbage", says(noise[:4096])},
		{"a web browser", says([]byte("GET / HTTP/1.1\r\nHost: example\r\n\r\n"))},
		{"a marker and garbage", says(append(probe.Marker[:], noise[:4096]...))},
		{"flood", floods(noise)},
		{"flood behind our marker", floods(append(probe.Marker[:], noise...))},
		{"flood behind parameters", floods(opens(long))},
		{"a length of 4 GB", says(append(opens("")[:iperf3.CookieSize], 0xff, 0xff, 0xff, 0xff))},
		{"a test without streams", says(opens(long))},
		{"a UDP test without streams", says(opens(`{"udp":true,"time":60,"parallel":128}`))},
		{"a small window and no stream", says(opens(`{"tcp":true,"time":60,"window":4096}`))},
	}
}

// strangers makes n hostile connections to a server, some at a time, and some datagrams.
// It answers how many were made.
func strangers(address string, n, atOnce int, hold time.Duration) int {
	ways := hostilities()
	var made atomic.Int64
	var left atomic.Int64
	left.Store(int64(n))
	udp, err := net.Dial("udp", address)
	if err == nil {
		defer udp.Close()
	}
	var coming sync.WaitGroup
	for worker := range atOnce {
		coming.Go(func() {
			for i := worker; left.Add(-1) >= 0; i++ {
				if udp != nil {
					udp.Write([]byte("9876"))
				}
				conn, err := net.Dial("tcp", address)
				if err != nil {
					continue
				}
				made.Add(1)
				over := make(chan struct{})
				leave := time.AfterFunc(hold, func() { close(over) })
				ways[i%len(ways)].act(conn.(*net.TCPConn), over)
				leave.Stop()
				conn.Close()
			}
		})
	}
	coming.Wait()
	return int(made.Load())
}

// strangersProgram brings a thousand of them to the server on its own host.
func strangersProgram() error {
	fmt.Println(strangers("127.0.0.1:5201", 1000, 100, 300*time.Millisecond))
	return nil
}

// openFiles is how many descriptors a process has.
func openFiles(t *testing.T, pid int) int {
	t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatalf("the server has gone: %v", err)
	}
	return len(all)
}

// A program that serves lets a test through, whole, among strangers, and has afterwards
// no descriptor more than before.
func TestStrangersLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	server := exec.Command(program, "serve", "--iperf3", "--listen", "127.0.0.1:0", "--json")
	server.Env = append(os.Environ(), "GODEBUG=")
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Process.Kill(); server.Wait() })
	lines := json.NewDecoder(out)
	var ready struct{ Listen, Key string }
	if err := lines.Decode(&ready); err != nil {
		t.Fatal(err)
	}
	go func() {
		for event := struct{}{}; lines.Decode(&event) == nil; {
		}
	}()
	key, err := probe.ParseKey(ready.Key)
	if err != nil {
		t.Fatal(err)
	}
	far, err := probe.Connect(t.Context(), ready.Listen, key)
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	spec := transfer.Spec{Direction: transfer.Up, Bytes: 1 << 20, Program: transfer.Program{WriteBps: 8e6}}
	small := spec
	small.Bytes = 1000
	if _, err := far.Run(t.Context(), small, nil); err != nil { // whatever is opened once is open now
		t.Fatal(err)
	}
	before := openFiles(t, server.Process.Pid)
	made := make(chan int)
	go func() { made <- strangers(ready.Listen, 320, 40, 50*time.Millisecond) }()
	result, err := far.Run(t.Context(), spec, nil)
	if err != nil {
		t.Errorf("the running test: %v", err)
	} else if span, ok := result.Received(); !ok || span.Bytes != spec.Bytes {
		t.Errorf("the running test moved %d bytes of %d", span.Bytes, spec.Bytes)
	}
	if n := <-made; n < 300 {
		t.Errorf("only %d of 320 strangers got a connection", n)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		now := openFiles(t, server.Process.Pid)
		if now <= before+16 { // the listeners of small windows stay: see server.windows
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d descriptors, %d before", now, before)
		}
	}
}

// TestBankStrangers compares what a test gets alone with what it gets while a thousand
// strangers come and go at the server's own host, so that the link is the test's alone.
// About five minutes.
func TestBankStrangers(t *testing.T) {
	bankOnly(t)
	for _, c := range []struct {
		path string
		args []string
	}{
		{"rate=100mbit,rtt=20ms,queue=2bdp", []string{"-d", "up"}},
		{"rate=100mbit,rtt=20ms,queue=2bdp", []string{"-d", "down"}},
		{"rate=20mbit,rtt=20ms,queue=2bdp", []string{"-d", "up"}},
		{"rate=unlimited,rtt=0ms", []string{"-d", "up", "--write-rate", "1gbit"}},
	} {
		const pairs = 8
		var without, with []float64
		made := 0
		for pair := range pairs {
			alone(t, func() {
				for turn := range 2 {
					if hostile := (turn+pair)%2 == 0; hostile {
						bps, n := goodputAmong(t, c.path, true, c.args)
						with, made = append(with, bps), made+n
					} else {
						bps, _ := goodputAmong(t, c.path, false, c.args)
						without = append(without, bps)
					}
				}
			})
		}
		gain := stats.Gain(without, with, 0.95)
		row := bankRow{Section: "The server under load", Case: "strangers, " + c.path + " " + strings.Join(c.args, " "),
			Claim: "a running test loses less than 2 % while 1,000 hostile clients come and go",
			Measured: fmt.Sprintf("%+.2f %% (%.4g against %.4g Mbit/s), %d strangers a run", 100*(gain.Mid-1), stats.Median(with)/1e6, stats.Median(without)/1e6,
				made/pairs), Spread: fmt.Sprintf("%+.2f to %+.2f %% (95 %%, %d pairs)", 100*(gain.Low-1), 100*(gain.High-1), pairs),
			Verdict: byInterval(gain.Low > 0.98, gain.Low > 0.98 || gain.High <= 0.98),
			Command: "fullpipe measure PEER -t 4s " + strings.Join(c.args, " ") + " in a lab; strangers on the far host"}
		record(t, row)
	}
}

// goodputAmong measures for four seconds, with strangers at the far host or without.
func goodputAmong(t *testing.T, path string, hostile bool, args []string) (bps float64, made int) {
	t.Helper()
	l, _ := bench(t, path)
	defer l.Close()
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	key := "FULLPIPE_KEY=" + probe.NewKey().String()
	far, err := l.Far.Start(lab.Command{Args: []string{program, "serve", "--iperf3", "--quiet"}, Env: []string{key}, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	l.Far.AwaitListener(t.Context(), far)
	var out, problems, count bytes.Buffer
	near, err := l.Near.Start(lab.Command{Args: append([]string{program, "measure", "fullpipe://" + lab.FarAddr.String(), "--json", "-t", "4s"}, args...),
		Env: []string{key}, Stdout: &out, Stderr: &problems})
	if err != nil {
		t.Fatal(err)
	}
	if hostile {
		crowd, err := l.Far.Start(lab.Command{Args: []string{self}, Env: []string{programVariable + "=strangers"}, Stdout: &count, Stderr: os.Stderr})
		if err != nil {
			t.Fatal(err)
		}
		if status, err := crowd.Wait(); err != nil || status != 0 {
			t.Fatalf("strangers: status %d, %v", status, err)
		}
		fmt.Sscan(count.String(), &made)
	}
	if status, err := near.Wait(); err != nil || status != 0 {
		t.Fatalf("measure: status %d, %v: %s%s", status, err, out.String(), problems.String())
	}
	var doc struct{ Directions []counted }
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil || len(doc.Directions) != 1 {
		t.Fatalf("%v: %s", err, out.String())
	}
	return doc.Directions[0].GoodputBps, made
}
