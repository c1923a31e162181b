package report_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/diagnose"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// seededCuts returns at how many points each recording and each capture is also cut.
func seededCuts() int {
	if testing.Short() {
		return 4
	}
	return 20
}

// TestFiguresAgree_Recordings reads every recorded transfer, whole and cut, seen at both ends and at one.
func TestFiguresAgree_Recordings(t *testing.T) {
	files, err := filepath.Glob("../verdict/live/testdata/*.json.gz")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d recorded transfers, %v", len(files), err)
	}
	eachFile(files, func(name string) {
		r := recordedTransfer(t, name)
		random := rand.New(rand.NewPCG(1, 2))
		for n := range seededCuts() + 1 {
			one := r
			if n > 0 {
				one = cutTransfer(r, 0.02+0.98*random.Float64())
			}
			switch n % 3 {
			case 1:
				one = oneEnd(one, one.Sender())
			case 2:
				one = oneEnd(one, one.Receiver())
			}
			d := report.Direction(one, live.Judge(one), nil)
			where := fmt.Sprintf("%s, cut %d", filepath.Base(name), n)
			checkMeasured(t, where, &d)
			if n == 0 {
				keepsAll(t, where, d.Verdict)
			}
		}
	})
}

// TestFiguresAgree_Captures reads every capture and every case, whole and cut.
func TestFiguresAgree_Captures(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.pcap.zst", "cases/*.pcap.zst"} {
		found, err := filepath.Glob("../diagnose/testdata/" + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	eachFile(files, func(name string) {
		packed, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
			return
		}
		unpacker, err := zstd.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Error(err)
			return
		}
		defer unpacker.Close()
		whole, err := io.ReadAll(unpacker)
		if err != nil {
			t.Error(err)
			return
		}
		random := rand.New(rand.NewPCG(3, 4))
		for n := range seededCuts() + 1 {
			text := whole
			if n > 0 {
				text = whole[:24+random.IntN(len(whole)-24)]
			}
			if n%2 == 0 && n > 0 {
				text = withoutBeginning(text, random.Float64())
			}
			doc, err := diagnosed(t, text)
			if err != nil {
				continue // cut too early to be a capture
			}
			for i := range doc.Connections {
				c := &doc.Connections[i]
				for j := range c.Directions {
					where := fmt.Sprintf("%s, cut %d", filepath.Base(name), n)
					checkCaptured(t, where, &c.Directions[j])
					if n == 0 {
						keepsAll(t, where, c.Directions[j].Verdict)
					}
				}
			}
		}
	})
}

// withoutBeginning returns a pcap file without a share of its bytes after the header, whole records.
func withoutBeginning(file []byte, share float64) []byte {
	const header, record = 24, 16
	at := header
	for at+record <= len(file) && float64(at) < share*float64(len(file)) {
		at += record + int(binary.LittleEndian.Uint32(file[at+8:]))
	}
	return slices.Concat(file[:min(header, len(file))], file[min(at, len(file)):])
}

// keepsAll checks that the guard removes nothing from an uncut recording.
func keepsAll(t *testing.T, where string, v verdict.Verdict) {
	t.Helper()
	for _, e := range v.Evidence {
		if e.Code == verdict.FiguresRemoved {
			t.Errorf("%s: %s", where, e.Text)
		}
	}
}

func checkMeasured(t *testing.T, where string, d *record.Direction) {
	t.Helper()
	if d.GoodputBps != nil && d.Bytes != nil && d.DurationS != nil {
		atMost(t, where+": goodput", *d.GoodputBps**d.DurationS, 1.05*8*float64(*d.Bytes))
	}
	for _, loaded := range []units.Duration{d.RTTMean, d.RTTLoaded} {
		if loaded != 0 && d.RTTMin != 0 {
			atMost(t, where+": least round trip", d.RTTMin.Seconds(), 1.01*loaded.Seconds())
		}
	}
	checkVerdict(t, where, &d.Verdict)
}

func checkCaptured(t *testing.T, where string, d *record.CapturedDirection) {
	t.Helper()
	if d.GoodputBps != nil {
		atMost(t, where+": goodput", *d.GoodputBps*d.DurationS, 1.05*8*float64(d.ShownBytes))
		if p := d.Prediction; p != nil {
			atMost(t, where+": measured against predicted", *d.GoodputBps, p.LowBps)
			if !p.AtLeast {
				atMost(t, where+": predicted range", p.LowBps, p.HighBps)
			}
		}
	}
	if d.RTTMinS != nil && d.RTTMaxS != nil {
		atMost(t, where+": least round trip", *d.RTTMinS, 1.01**d.RTTMaxS)
	}
	for _, e := range d.Evidence {
		if best := e.Values["best_bps"]; best > 0 && d.ShownBytes > 0 {
			atMost(t, where+": best rate "+string(e.Code), best*e.Values["time_ratio"]*d.DurationS,
				1.3*8*float64(d.ShownBytes))
		}
	}
	checkVerdict(t, where, &d.Verdict)
}

func checkVerdict(t *testing.T, where string, v *verdict.Verdict) {
	t.Helper()
	if len(v.Evidence) == 0 {
		t.Errorf("%s: %s without evidence", where, v.Limiter)
	}
	for _, e := range v.Evidence {
		at := where + ": " + string(e.Code)
		if base, ok := e.Values["rtt_base_s"]; ok && e.Values["rtt_s"] > 0 {
			atMost(t, at+": least round trip", base, 1.01*e.Values["rtt_s"])
		}
		for _, key := range []string{"time_ratio", "retransmitted_ratio", "full_ratio"} {
			atMost(t, at+": "+key, e.Values[key], 1.05)
		}
		if twice, ok := e.Values["twice_bps"]; ok {
			atMost(t, at+": twice", e.Values["allows_bps"], twice)
		}
		if strings.Contains(e.Text, "round trip of 0 ns") || strings.Contains(e.Text, "round trip 0 ns") {
			t.Errorf("%s: %s", at, e.Text)
		}
	}
}

func atMost(t *testing.T, name string, left, right float64) {
	t.Helper()
	if left > right {
		t.Errorf("%s: %g is more than %g", name, left, right)
	}
}

// eachFile reads files on all processors.
func eachFile(files []string, read func(string)) {
	next := make(chan string)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for name := range next {
				read(name)
			}
		})
	}
	for _, name := range files {
		next <- name
	}
	close(next)
	wait.Wait()
}

func recordedTransfer(t *testing.T, name string) *transfer.Result {
	t.Helper()
	packed, err := os.ReadFile(name)
	if err != nil {
		t.Error(err)
	}
	var r transfer.Result
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		err = json.NewDecoder(unpacked).Decode(&r)
	}
	if err != nil {
		t.Error(name, err)
	}
	return &r
}

// cutTransfer returns the first part of a transfer.
func cutTransfer(r *transfer.Result, part float64) *transfer.Result {
	out := *r
	for _, end := range []**transfer.End{&out.Near, &out.Far} {
		if *end == nil {
			continue
		}
		e := **end
		e.Streams = append([]transfer.Stream(nil), e.Streams...)
		for i := range e.Streams {
			s := &e.Streams[i]
			s.Last = s.First + time.Duration(part*float64(s.Last-s.First))
			s.Bytes = int64(part * float64(s.Bytes))
			n := 0
			for n < len(s.Samples) && s.Samples[n].At <= s.Last {
				n++
			}
			s.Samples = s.Samples[:n:n]
		}
		*end = &e
	}
	return &out
}

func oneEnd(r *transfer.Result, end *transfer.End) *transfer.Result {
	out := transfer.Result{Spec: r.Spec, Complete: r.Complete}
	if end == r.Near {
		out.Near = end
	} else {
		out.Far = end
	}
	return &out
}

func diagnosed(t *testing.T, text []byte) (*record.Diagnose, error) {
	name := filepath.Join(t.TempDir(), "cut.pcap")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		return nil, err
	}
	f, err := capture.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	a, err := capture.Analyze(context.Background(), capture.Config{}, f)
	if err != nil {
		return nil, err
	}
	return report.Diagnose(record.Header{}, diagnose.New(a, 1)), nil
}
