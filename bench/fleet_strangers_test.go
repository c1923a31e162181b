//go:build linux

package bench

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

type hubStranger struct {
	name string
	tls  bool
	text string
}

// hubStrangers are clients of a hub that prove nothing, by what they send. None reads or ends.
var hubStrangers = []hubStranger{
	{"silent", false, ""},
	{"half a ClientHello", false, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
	{"silent after the handshake", true, ""},
	{"half a header", true, "GET / HTTP/1.1\r\nHost: "},
	{"without a token", true, "GET /api/v1/fleet/grid HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"},
	{"half a join", true, "POST /api/v1/join HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9000\r\n\r\n{"},
	{"the bus, silent", true, "GET /nats HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"},
}

// TestBankHubStrangers makes 10,000 connections of hostile clients to a hub, from 2,500 hosts, and keeps each open until
// the hub closes it. The row is the hub's greatest memory above that before.
func TestBankHubStrangers(t *testing.T) {
	bankOnly(t)
	const connections, hosts, most = 10_000, 2_500, 32 << 20
	port := harness.FreePort(t)
	center := startHub(t, harness.HubProgram(t), append(os.Environ(), "FULLPIPE_STATE="+t.TempDir()), port)
	time.Sleep(5 * time.Second) // the start is over
	before := center.resident(t)
	reached := make([]atomic.Int64, len(hubStrangers))
	var open, work sync.WaitGroup
	places := make(chan struct{}, 200)
	over := make(chan struct{})
	for i := range connections {
		places <- struct{}{}
		open.Add(1)
		work.Go(func() {
			host := i % hosts
			from := net.Dialer{Timeout: 20 * time.Second,
				LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 8, byte(host/250), byte(1+host%250))}}
			conn, err := from.Dial("tcp", "127.0.0.1:"+port)
			if err == nil {
				kind := i % len(hubStrangers)
				if hubStrangers[kind].begin(conn) == nil {
					reached[kind].Add(1)
				}
			}
			<-places
			open.Done()
			<-over
			if conn != nil {
				conn.Close()
			}
		})
	}
	open.Wait()
	time.Sleep(15 * time.Second) // the time limits of handshakes and headers are over
	grown := center.peak(t) - before
	began := time.Now()
	out, err := exec.Command("curl", "-sSk", "-m", "20", "-o", os.DevNull, "-w", "%{http_code}",
		"https://127.0.0.1:"+port+"/api/v1/fleet/grid").Output()
	if err != nil || string(out) != "401" {
		t.Errorf("another client: %s, %v", out, err)
	}
	t.Logf("another client was answered within %v", time.Since(began).Round(time.Millisecond))
	close(over)
	work.Wait()
	spread := ""
	for i, k := range hubStrangers {
		spread += fmt.Sprintf("%s %d; ", k.name, reached[i].Load())
		if reached[i].Load() == 0 {
			t.Errorf("none was %s: the row shows nothing", k.name)
		}
	}
	record(t, bankRow{Section: "fleet", Case: "10,000 hostile connections to a hub, from 2,500 hosts",
		Claim: "at most 32 MB more", Command: "make bank RUN=" + t.Name(),
		Measured: fmt.Sprintf("%d MB more than %d MB", grown>>20, before>>20), Spread: spread,
		Verdict: byInterval(grown <= most, true)})
	if grown > most {
		t.Errorf("%d MB more", grown>>20)
	}
}

// begin sends what a client sends.
func (k hubStranger) begin(conn net.Conn) error {
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second)) // it fails on a closed connection only
	if k.tls {
		secured := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
		err := secured.Handshake()
		if err != nil {
			return err
		}
		conn = secured
	}
	_, err := conn.Write([]byte(k.text))
	return err
}

// peak returns the hub's greatest resident memory in bytes.
func (h *hubProcess) peak(t *testing.T) (bytes int64) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	if _, err := fmt.Sscan(rest, &bytes); err != nil {
		t.Fatal(err)
	}
	return bytes << 10
}
