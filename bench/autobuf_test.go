//go:build linux

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/autobuf"
	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// A program that sends a file through a lab: with package net as most programs use it, with autobuf that learns the
// path, and with autobuf that is given the path.
const (
	withNet    = "net"
	withLearnt = "learnt"
	withStated = "stated"
)

// sendOrder is the configuration of both programs.
type sendOrder struct {
	With  string
	Path  autobuf.Path
	Bytes int64
}

func (o sendOrder) port() string {
	return map[string]string{withNet: "9000", withLearnt: "9001", withStated: "9002"}[o.With]
}

func (o sendOrder) config() (cfg autobuf.Config) {
	if o.With == withStated {
		cfg.Path = o.Path
	}
	return cfg
}

func readOrder() (o sendOrder, err error) {
	err = json.Unmarshal([]byte(os.Getenv("FULLPIPE_E2E_ORDER")), &o)
	return o, err
}

// takeFileProgram receives a file and confirms its end with one byte.
func takeFileProgram() error {
	o, err := readOrder()
	if err != nil {
		return err
	}
	lc := autobuf.ListenConfig{Config: o.config()}
	listen := lc.Listen
	if o.With == withNet {
		listen = (&net.ListenConfig{}).Listen
	}
	l, err := listen(context.Background(), "tcp", ":"+o.port())
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			if _, err := io.Copy(io.Discard, c); err == nil {
				_, _ = c.Write([]byte{1})
			}
		}()
	}
}

// sendFileProgram prints the seconds from the first byte to the far end's confirmation.
func sendFileProgram() error {
	o, err := readOrder()
	if err != nil {
		return err
	}
	d := autobuf.Dialer{Config: o.config()}
	dial := d.Dial
	if o.With == withNet {
		dial = (&net.Dialer{}).Dial
	}
	conn, err := dial("tcp", net.JoinHostPort(os.Getenv("FULLPIPE_FAR"), o.port()))
	if err != nil {
		return err
	}
	defer conn.Close()
	start := time.Now()
	block := make([]byte, 256<<10)
	for left := o.Bytes; left > 0; left -= int64(len(block)) {
		if _, err := conn.Write(block); err != nil {
			return err
		}
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return err
	}
	_, err = fmt.Println(time.Since(start).Seconds())
	return err
}

func orderEnv(program string, o sendOrder) []string {
	text, _ := json.Marshal(o) // strings and numbers only
	return []string{harness.ProgramVariable + "=" + program, "FULLPIPE_E2E_ORDER=" + string(text)}
}

// sendFile returns the goodput in Mbit/s.
func sendFile(t *testing.T, l *lab.Lab, o sendOrder) float64 {
	t.Helper()
	var out, problems bytes.Buffer
	status, err := l.Near.Run(lab.Command{Args: []string{"/proc/self/exe"}, Env: orderEnv("send-file", o), Stdout: &out,
		Stderr: &problems})
	var seconds float64
	if err == nil && status != 0 {
		err = errors.New(problems.String())
	}
	if err == nil {
		_, err = fmt.Sscan(out.String(), &seconds)
	}
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	return float64(o.Bytes) * 8 / seconds / 1e6
}

// TestBankAutobuf compares autobuf with package net on hosts with Linux 6.1's defaults,
// whole transfers, slow start included.
func TestBankAutobuf(t *testing.T) {
	bankOnly(t)
	const narrow = "echo 4096 16384 65536 >/proc/sys/net/ipv4/tcp_wmem"
	for _, tt := range []struct {
		name, lab, before string
		path              autobuf.Path
		bytes             int64
		least             float64 // that autobuf has to reach
		rounds            int
	}{
		{"100 Mbit/s × 1 ms: nothing to gain", "rate=100mbit,rtt=1ms", "", autobuf.Path{Bps: 100e6, RTT: time.Millisecond},
			24 << 20, 0.98, 8},
		{"20 Mbit/s × 40 ms: nothing to gain", "rate=20mbit,rtt=40ms", "", autobuf.Path{Bps: 20e6,
			RTT: 40 * time.Millisecond}, 6 << 20, 0.98, 8},
		{"200 Mbit/s × 200 ms: the automatic send buffer ends too early", "rate=200mbit,rtt=200ms", "",
			autobuf.Path{Bps: 200e6, RTT: 200 * time.Millisecond}, 96 << 20, 1.1, 4},
		{"20 Mbit/s × 100 ms, automatic buffers end at 64 KiB", "rate=20mbit,rtt=100ms", narrow, autobuf.Path{Bps: 20e6,
			RTT: 100 * time.Millisecond}, 8 << 20, 1.1, 4},
	} {
		t.Run(strings.Fields(tt.lab)[0], func(t *testing.T) {
			order := sendOrder{Path: tt.path, Bytes: tt.bytes}
			kinds := []string{withNet, withLearnt, withStated}
			rates := map[string][]float64{}
			verdict := func(kind string) string {
				gain := stats.Gain(rates[withNet], rates[kind], 0.95)
				return byInterval(gain.Low >= tt.least, gain.Low >= tt.least || gain.High < tt.least)
			}
			runs := exact{want: tt.rounds, open: func() bool {
				return verdict(withLearnt) == "inconclusive" || verdict(withStated) == "inconclusive"
			}}
			for runs.more() {
				turn := slices.Clone(kinds)
				if runs.counted%2 == 1 {
					slices.Reverse(turn)
				}
				once := map[string]float64{}
				var late []lab.Lateness
				alone(t, func() {
					for _, order.With = range turn { // in a lab each: hosts remember paths
						rate, account := sendFileFresh(t, tt.lab+",stack=linux-6.1", tt.before, order)
						once[order.With], late = rate, append(late, account)
					}
				})
				if runs.keep(lateness(late...)) {
					for kind, rate := range once {
						rates[kind] = append(rates[kind], rate)
					}
				}
			}
			if runs.counted == 0 {
				t.Fatal("no run of exact labs")
			}
			for _, kind := range kinds[1:] {
				gain := stats.Gain(rates[withNet], rates[kind], 0.95)
				record(t, runs.into(bankRow{Section: "autobuf", Case: tt.name,
					Claim: fmt.Sprintf("%s: at least %g × net.Dialer", kind, tt.least),
					Measured: fmt.Sprintf("%.2f × (%.3g against %.3g Mbit/s)", gain.Mid, median(rates[kind]),
						median(rates[withNet])),
					Spread:  fmt.Sprintf("%.2f to %.2f (95 %%, %d pairs)", gain.Low, gain.High, len(rates[kind])),
					Verdict: verdict(kind),
					Command: fmt.Sprintf("make bank RUN=TestBankAutobuf (lab %s,stack=linux-6.1)", tt.lab)}))
			}
		})
	}
}

// sendFileFresh sends a file through a lab of its own.
func sendFileFresh(t *testing.T, path, before string, o sendOrder) (mbps float64, late lab.Lateness) {
	t.Helper()
	l, _ := harness.StartLab(t, path)
	defer l.Close()
	if before != "" {
		if _, err := l.Near.Output("sh", "-c", before); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Far.Start(lab.Command{Args: []string{"/proc/self/exe"}, Env: orderEnv("take-file", o),
		Stderr: os.Stderr}); err != nil {
		t.Fatal(err)
	}
	harness.AwaitPort(t, l, o.port())
	mbps = sendFile(t, l, o)
	late, err := l.Lateness()
	if err != nil {
		t.Fatal(err)
	}
	return mbps, late
}

func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
