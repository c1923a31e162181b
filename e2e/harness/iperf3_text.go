//go:build linux

package harness

import (
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// StartIperf3 starts iperf3 -s with more options on loopback and returns its port.
func StartIperf3(t *testing.T, args ...string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(StartIperf3Server(t, args...))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

var (
	anyNumber = regexp.MustCompile(`\d+(\.\d+)?`)
	anyCookie = regexp.MustCompile(`Cookie: \S+`)
	anyDay    = regexp.MustCompile(`\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d+ [A-Z][a-z]{2} `)
	anyUnit   = regexp.MustCompile(`[KMGT]?(bits|Bytes)`)
)

// Iperf3Shape returns the lines of iperf3's text output without figures, units and days.
func Iperf3Shape(text string) (lines []string) {
	for line := range strings.Lines(text) {
		line = anyCookie.ReplaceAllString(line, "Cookie: C")
		line = anyDay.ReplaceAllString(line, "DAY ") // it may change between two runs
		line = anyUnit.ReplaceAllString(anyNumber.ReplaceAllString(line, "0"), "U")
		line = strings.Join(strings.Fields(line), " ")
		if strings.HasPrefix(line, "[ ID]") { // 3.12 names the columns of a receiver in two ways
			line = strings.TrimSuffix(line, " Retr Cwnd")
		}
		lines = append(lines, line)
	}
	return lines
}

// AwaitListener waits until a socket listens on a port of this network namespace. It does not connect.
func AwaitListener(t *testing.T, port string) {
	t.Helper()
	n, _ := strconv.Atoi(port)
	listens := regexp.MustCompile(`(?m)^ *\d+: [0-9A-F]+:` + strings.ToUpper(strconv.FormatInt(int64(n)|1<<16, 16)[1:]) +
		` [0-9A-F]+:0000 0A `)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
			if text, err := os.ReadFile(table); err == nil && listens.Match(text) {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("no socket listens on port %s", port)
		}
	}
}
