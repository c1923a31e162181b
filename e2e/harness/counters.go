//go:build linux

package harness

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// headerBytesPerSegment are the bytes of the IPv4 header and of the TCP header with timestamps.
const headerBytesPerSegment = 20 + 32

// LinkSample is a sample of a link's counters in one direction.
type LinkSample struct {
	At      time.Duration
	Packets int64
	Payload int64 // bytes without headers
	dropped int64 // packets that the queue dropped
}

// MeasuredTransfer is one direction in the output of `measure --json`.
type MeasuredTransfer struct {
	GoodputBps    float64 `json:"goodput_bps"`
	Duration      float64 `json:"duration_s"`
	Bytes         int64
	Retransmitted int64 `json:"retransmitted_segments"`
	SpuriousBytes int64 `json:"-"` // payload that was retransmitted without a drop; 0 if unknown
}

// MeasureInLab runs `measure` against a native or an iperf3 server in a lab. It returns the result and samples of
// the link's counters.
func MeasureInLab(t *testing.T, path, kind string, d transfer.Direction, args ...string) (MeasuredTransfer,
	[]LinkSample) {
	t.Helper()
	l, _ := StartLab(t, path)
	defer l.Close()
	program := Program(t)
	key := "FULLPIPE_KEY=" + probe.NewKey().String()
	server := []string{program, "serve", "--quiet"}
	peer := "fullpipe://" + lab.FarAddr.String()
	if kind == "iperf3" {
		server = []string{testenv.Program(t, testenv.Iperf3), "-s"}
		peer = "iperf3://" + lab.FarAddr.String()
	}
	far, err := l.Far.Start(lab.Command{Args: server, Env: []string{key}})
	if err != nil {
		t.Fatal(err)
	}
	l.Far.AwaitListener(t.Context(), far)
	var out, problems bytes.Buffer
	near, err := l.Near.Start(lab.Command{Args: append([]string{program, "measure", peer, "--json", "-d", string(d)},
		args...),
		Env: []string{key}, Stdout: &out, Stderr: &problems})
	if err != nil {
		t.Fatal(err)
	}
	series := sampleCounters(t, l, near, d)
	if status, err := near.Wait(); err != nil || status != 0 {
		t.Fatalf("measure: status %d, %v: %s%s", status, err, out.String(), problems.String())
	}
	var doc struct{ Directions []MeasuredTransfer }
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil || len(doc.Directions) != 1 {
		t.Fatalf("%v: %s", err, out.String())
	}
	m := doc.Directions[0]
	m.SpuriousBytes = 1448 * max(m.Retransmitted-series[len(series)-1].dropped, 0)
	return m, series
}

// sampleCounters samples the link's counters until a program ends and returns a sample for each change.
func sampleCounters(t *testing.T, l *lab.Lab, until *lab.Process, d transfer.Direction) (series []LinkSample) {
	t.Helper()
	started := time.Now()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	var last link.Counters
	for running := true; running; {
		select {
		case <-tick.C:
		case <-until.Done():
			running = false
		}
		up, down, err := l.Counters()
		if err != nil {
			t.Fatal(err)
		}
		n := up
		if d == transfer.Down {
			n = down
		}
		if n.Delivered != last.Delivered {
			series = append(series, LinkSample{time.Since(started), n.Delivered,
				n.DeliveredBytes - headerBytesPerSegment*n.Delivered,
				n.DroppedQueue})
		}
		last = n
	}
	return series
}
