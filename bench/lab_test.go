//go:build linux

package bench

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
)

func passed(pass bool) string {
	if pass {
		return "pass"
	}
	return "fail"
}

// cpuTicks is the time that all processors together have spent.
type cpuTicks struct{ idle, all float64 }

func ticks(t *testing.T) (n cpuTicks) {
	t.Helper()
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	for i, field := range strings.Fields(line)[1:9] {
		v, err := strconv.ParseFloat(field, 64)
		if err != nil {
			t.Fatal(err)
		}
		n.all += v
		if i == 3 || i == 4 { // idle, iowait
			n.idle += v
		}
	}
	return n
}

// share returns the share of the machine that was busy since then.
func (n cpuTicks) share(since cpuTicks) float64 {
	return 1 - (n.idle-since.idle)/max(1, n.all-since.all)
}

// quietVerdict judges a figure that is promised for an idle machine. On a busy machine a missed figure is
// inconclusive.
func quietVerdict(pass bool, busy float64) string {
	if !pass && busy > 0.15 {
		return "inconclusive"
	}
	return passed(pass)
}

// company returns how busy other programs keep the machine.
func company(t *testing.T) float64 {
	t.Helper()
	before := ticks(t)
	<-time.After(500 * time.Millisecond)
	return ticks(t).share(before)
}

// TestBankLabRTT compares the round trips of ping's packets with the RTT that the link was configured for. tcpdump
// measures them, because ping itself prints whole milliseconds from 100 on.
func TestBankLabRTT(t *testing.T) {
	bankOnly(t)
	for _, text := range []string{"rate=1gbit,rtt=0ms", "rate=1gbit,rtt=0.5ms", "rate=1gbit,rtt=1ms",
		"rate=100mbit,rtt=7ms", "rate=100mbit,rtt=12ms", "rate=100mbit,rtt=40ms",
		"rate=100mbit,rtt=63ms", "rate=1gbit,rtt=100ms", "rate=100mbit,rtt=215ms", "rate=20mbit,rtt=600ms",
		"rate=64kbit,rtt=30ms"} {
		var runs exact
		for runs.more() {
			alone(t, func() { bankRTT(t, text, &runs) })
		}
	}
}

// bankRTT records a row when the lab was exact, or when this was the last try.
func bankRTT(t *testing.T, text string, runs *exact) {
	t.Helper()
	l, path := harness.StartLab(t, text)
	defer l.Close()
	const command = "ping -n -i 0.02 -c 300"
	name := filepath.Join(t.TempDir(), "near.pcap")
	dump := startDump(t, l.Near, name, "icmp")
	if out, err := l.Near.Output(append(strings.Fields(command), lab.FarAddr.String())...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	stopDump(t, dump)
	a, err := l.Lateness()
	if err != nil {
		t.Fatal(err)
	}
	if runs.keep(lateness(a)); runs.more() {
		return
	}
	const packet = 84 // 56 bytes of ICMP payload and the headers
	whole := max(path.RTT, a.Floor).Seconds() * 1e3
	asked := whole + packet*8e3/float64(path.Up.Rate) + packet*8e3/float64(path.Down.Rate)
	over := echoes(t, name)
	for i := range over {
		over[i] -= asked
	}
	slices.Sort(over)
	median, late := over[len(over)/2], over[len(over)*99/100]
	record(t, runs.into(bankRow{Section: "lab: fidelity", Case: text,
		Claim: "median RTT within 0.1 ms of what was asked or the floor, whichever is more, and the bits' time; 99th " +
			"percentile within 0.5 ms",
		Measured: fmt.Sprintf("median %+.3f ms, 99th percentile %+.3f ms of %.3f ms", median, late, asked),
		Spread: fmt.Sprintf("%+.3f to %+.3f ms in %d, floor %.3f ms", over[0], over[len(over)-1], len(over),
			1e3*a.Floor.Seconds()),
		Verdict: passed(math.Abs(median) <= 0.1 && late <= 0.5),
		Command: fmt.Sprintf("fullpipe lab %s -- %s $FULLPIPE_FAR; tcpdump -i lab0 icmp at the near end", text, command)}))
}

// iperf3In runs one transfer from near to far.
func iperf3In(t *testing.T, l *lab.Lab, flags ...string) (result struct {
	End struct {
		Received struct {
			BitsPerSecond float64 `json:"bits_per_second"`
		} `json:"sum_received"`
	} `json:"end"`
}) {
	t.Helper()
	far, err := l.Far.Start(lab.Command{Args: []string{"iperf3", "-s", "-1"}})
	if err != nil {
		t.Fatal(err)
	}
	l.Far.AwaitListener(t.Context(), far)
	out, err := l.Near.Output(append([]string{"iperf3", "-J", "-C", "cubic", "-c", l.Far.Addr.String()}, flags...)...)
	if err == nil {
		err = json.Unmarshal(out, &result)
	}
	if err != nil {
		t.Fatalf("iperf3: %v\n%s", err, bytes.TrimSpace(out))
	}
	return result
}

// TestBankLabRate fills links with iperf3 and takes their rate from tcpdump at the far end.
func TestBankLabRate(t *testing.T) {
	bankOnly(t)
	for _, rate := range []string{"28.8kbit", "64kbit", "1.544mbit", "10mbit", "100mbit", "1gbit"} {
		var runs exact
		measure := func() {
			text := "rate=" + rate + ",rtt=2ms,queue=600kB"
			if rate == "28.8kbit" || rate == "64kbit" {
				text = "rate=" + rate + ",rtt=2ms"
			}
			l, path := harness.StartLab(t, text)
			const mtu = 1500
			bps := float64(path.Up.Rate)
			span := max(5, 100*mtu*8/bps)
			got, n, seconds := arriving(t, l, span)
			if _, err := runs.keepLab(l); err != nil || runs.more() {
				return
			}
			record(t, runs.into(bankRow{Section: "lab: fidelity", Case: text, Claim: "rate within 0.5 % over 100 packets or 5 s",
				Measured: fmt.Sprintf("%+.3f %%", 100*(got/bps-1)),
				Spread:   fmt.Sprintf("%d packets in %.2f s", n, seconds),
				Verdict:  passed(math.Abs(got/bps-1) <= 0.005),
				Command: fmt.Sprintf("fullpipe lab %s --far 'iperf3 -s' -- iperf3 -c $FULLPIPE_FAR -t %.0f; tcpdump -i lab0 at "+
					"the far end", text, span+2)}))
		}
		for runs.more() {
			alone(t, measure)
		}
	}
}

// arriving runs a transfer for some seconds. It returns the arrival rate without the first two seconds, in bits a
// second at the IP layer, the number of packets, and the time from the first of them to the last.
func arriving(t *testing.T, l *lab.Lab, span float64) (bps float64, n int, seconds float64) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "far.pcap")
	dump := startDump(t, l.Far, name, "tcp and dst "+lab.FarAddr.String())
	iperf3In(t, l, "-t", fmt.Sprintf("%.0f", span+2))
	stopDump(t, dump)
	times, sizes := packetsIn(t, name)
	start := times[0] + 2
	first, bits := -1, 0.0
	for i := range times {
		if times[i] < start || times[i] > start+span {
			continue
		}
		if first < 0 {
			first = i // its own bits were on the line before
			continue
		}
		bits += 8 * float64(sizes[i])
		n++
		seconds = times[i] - times[first]
	}
	return bits / seconds, n, seconds
}

// startDump captures headers at one end, from its return on.
func startDump(t *testing.T, e *lab.End, name, filter string) *lab.Process {
	t.Helper()
	dump, err := e.Start(lab.Command{Args: []string{"tcpdump", "-n", "-i", "lab0", "-s", "60", "-w", name, "-U",
		"--immediate-mode", "-B", "65536", filter}})
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 500 {
		if _, err := os.Stat(name); err == nil {
			return dump
		}
		<-tick.C
	}
	t.Fatal("tcpdump does not start")
	return nil
}

func stopDump(t *testing.T, dump *lab.Process) {
	t.Helper()
	if err := dump.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, err := dump.Wait(); err != nil {
		t.Fatal(err)
	}
}

// echoes returns the round trips, in milliseconds, of the pings in a capture.
func echoes(t *testing.T, name string) (trips []float64) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	sent := map[uint16]float64{}
	order := binary.LittleEndian
	for at := 24; at+16 <= len(data); {
		packet := data[at+16:]
		ms := float64(order.Uint32(data[at:]))*1e3 + float64(order.Uint32(data[at+4:]))/1e3
		sequence := binary.BigEndian.Uint16(packet[26:])
		if packet[20] == 8 {
			sent[sequence] = ms
		} else if start, ok := sent[sequence]; ok {
			trips = append(trips, ms-start)
		}
		at += 16 + int(order.Uint32(data[at+8:]))
	}
	if len(trips) < 100 {
		t.Fatalf("%d round trips captured", len(trips))
	}
	return trips
}

// packetsIn reads a capture's times, in seconds, and the bytes that each entry was on
// the line: several segments handed over together had a header each.
func packetsIn(t *testing.T, name string) (times []float64, sizes []int) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil || len(data) < 24 {
		t.Fatalf("capture: %d bytes, %v", len(data), err)
	}
	order := binary.LittleEndian
	for at := 24; at+16 <= len(data); {
		captured, length := int(order.Uint32(data[at+8:])), int(order.Uint32(data[at+12:]))
		packet := data[at+16 : at+16+captured]
		header := int(packet[0]&15) * 4
		header += int(packet[header+12]>>4) * 4
		if payload := length - header; payload > 1500-header {
			length += (payload - 1) / (1500 - header) * header
		}
		times = append(times, float64(order.Uint32(data[at:]))+float64(order.Uint32(data[at+4:]))/1e6)
		sizes = append(sizes, length)
		at += 16 + captured
	}
	return times, sizes
}

// TestBankLabSpeed measures how much the lab carries.
func TestBankLabSpeed(t *testing.T) {
	bankOnly(t)
	const everything = "jitter=0.2ms,loss=0.0001%,duplicate=0.0001%,reorder=0.0001%,police=4gbit/20MB,up.overhead=0," +
		"mtu=1500,seed=3"
	tests := []struct {
		text string
		want float64 // bit/s at the IP layer
		how  string  // "exact": within 0.5 %; "least"
	}{
		{"rate=2gbit,rtt=4ms,queue=8MB", 2e9, "exact"},
		{"rate=2gbit,rtt=4ms,queue=8MB," + everything, 2e9, "exact"},
		{"rate=unlimited,rtt=0ms", 12e9, "least"},
	}
	for _, test := range tests {
		var got []float64
		busy := 0.0
		for range 3 {
			alone(t, func() {
				busy = max(busy, company(t))
				l, _ := harness.StartLab(t, test.text)
				const perByte = 1500.0 / 1448 // of payload on a link with timestamps
				r := iperf3In(t, l, "-t", "5", "-O", "3", "-P", "3")
				got = append(got, r.End.Received.BitsPerSecond*perByte)
				l.Close()
			})
		}
		slices.Sort(got)
		claim, pass := "at least 12 Gbit/s, iperf3 included", got[1] >= test.want
		if test.how == "exact" {
			claim, pass = "2 Gbit/s within 0.5 %", math.Abs(got[1]/test.want-1) <= 0.005
		}
		record(t, bankRow{Section: "lab: speed", Case: test.text, Claim: claim,
			Measured: fmt.Sprintf("%.3f Gbit/s (IP layer)", got[1]/1e9),
			Spread: fmt.Sprintf("%.3f to %.3f in 3 runs, machine at most %.0f %% busy before", got[0]/1e9, got[2]/1e9,
				100*busy),
			Verdict: quietVerdict(pass, busy),
			Command: fmt.Sprintf("fullpipe lab %s --far 'iperf3 -s' -- iperf3 -c $FULLPIPE_FAR -C cubic -t 5 -O 3 -P 3",
				test.text)})
	}
}

// TestBankLabLoss compares the share of lost pings with the configured loss, and the lost pings of two runs with the
// same seed.
func TestBankLabLoss(t *testing.T) {
	bankOnly(t)
	const n, p = 5000, 0.02
	text := "rate=100mbit,rtt=2ms,up.loss=2%,seed=11"
	var lost [2][]int
	for i := range lost {
		alone(t, func() {
			l, _ := harness.StartLab(t, text)
			defer l.Close()
			out, _ := l.Near.Output("ping", "-n", "-i", "0.002", "-c", strconv.Itoa(n), lab.FarAddr.String())
			arrived := make([]bool, n+1)
			for line := range strings.Lines(string(out)) {
				if _, rest, ok := strings.Cut(line, "icmp_seq="); ok {
					if seq, err := strconv.Atoi(strings.Fields(rest)[0]); err == nil && seq <= n {
						arrived[seq] = true
					}
				}
			}
			for seq := 1; seq <= n; seq++ {
				if !arrived[seq] {
					lost[i] = append(lost[i], seq)
				}
			}
		})
	}
	spread := 2.576 * math.Sqrt(n*p*(1-p))
	same := slices.Equal(lost[0], lost[1])
	record(t, bankRow{Section: "lab: fidelity", Case: text, Claim: "loss within the 99 % binomial interval, the same " +
		"packets for the same seed",
		Measured: fmt.Sprintf("%d of %d lost; the same ones in a second run: %v", len(lost[0]), n, same),
		Spread:   fmt.Sprintf("%.0f ± %.0f expected", n*p, spread),
		Verdict:  passed(same && math.Abs(float64(len(lost[0]))-n*p) <= spread),
		Command:  fmt.Sprintf("fullpipe lab %s -- ping -i 0.002 -c %d $FULLPIPE_FAR", text, n)})
}
