package live

import (
	"compress/gzip"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestRecorded judges transfers that were recorded from kernel TCP in the lab. A file's
// name begins with what truly limited: without it the goodput was more than 10 % higher
// (TestBankAttribution in bench measures that and writes such files).
func TestRecorded(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json.gz")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d recorded transfers, %v", len(files), err)
	}
	for _, name := range files {
		want, cause, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), ".json.gz"), "_")
		t.Run(cause, func(t *testing.T) {
			r := recorded(t, name)
			v := Judge(r)
			if v.Limiter != verdict.Name(want) {
				t.Errorf("%s, %s confidence; want %s\n\tshares %v\n\t%v", v.Limiter, v.Confidence, want, v.Shares, v.Evidence)
			}
			if subtype := subtypeOf(cause); subtype != "" && v.Subtype != subtype {
				t.Errorf("%s (%s); want %s", v.Limiter, v.Subtype, subtype)
			}
			complete(t, v)
			if s := JudgeSteady(r); want != string(verdict.SlowStart) && s.Limiter != verdict.Name(want) {
				t.Errorf("after slow start: %s; want %s: %v", s.Limiter, want, s.Shares)
			}
			for end, half := range map[string]*transfer.Result{
				"sender":   {Spec: r.Spec, Near: seen(r.Sender(), r.Near), Far: seen(r.Sender(), r.Far)},
				"receiver": {Spec: r.Spec, Near: seen(r.Receiver(), r.Near), Far: seen(r.Receiver(), r.Far)},
			} {
				v := Judge(half)
				if v.Limiter != verdict.Name(want) && v.Confidence == verdict.High {
					t.Errorf("with the %s alone: %s with high confidence; want %s", end, v.Limiter, want)
				}
				complete(t, v)
			}
		})
	}
}

// subtypeOf returns the subtype that the verdict on a recorded cause must have, or "".
func subtypeOf(cause string) string {
	switch {
	case strings.HasPrefix(cause, "fixed-SO_RCVBUF"):
		return verdict.Fixed
	case strings.HasPrefix(cause, "window-of-one-segment"):
		return verdict.AckTimer
	case strings.HasPrefix(cause, "no-window-scaling"):
		return verdict.Unscaled
	}
	return ""
}

// complete checks the properties of every verdict.
func complete(t *testing.T, v verdict.Verdict) {
	t.Helper()
	sum := 0.0
	for _, share := range v.Shares {
		sum += share
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("shares sum to %v: %v", sum, v.Shares)
	}
	if len(v.Evidence) == 0 {
		t.Errorf("%s without evidence", v.Limiter)
	}
	if (v.Limiter == verdict.Unknown || v.Limiter == verdict.Mixed) && len(v.Candidates) == 0 {
		t.Errorf("%s without candidates", v.Limiter)
	}
}

// seen is the end if it is the one that can be seen.
func seen(one, end *transfer.End) *transfer.End {
	if one == end {
		return end
	}
	return nil
}

// decoded has the recorded transfers by file name: decoding one takes longer than judging it.
var decoded sync.Map

// recorded returns a recorded transfer, which the caller may change.
func recorded(t testing.TB, name string) *transfer.Result {
	t.Helper()
	kept, ok := decoded.Load(name)
	if !ok {
		kept, _ = decoded.LoadOrStore(name, decode(t, name))
	}
	r := *kept.(*transfer.Result)
	for _, end := range []**transfer.End{&r.Near, &r.Far} {
		if *end == nil {
			continue
		}
		e := **end
		e.Streams = slices.Clone(e.Streams)
		for i := range e.Streams {
			e.Streams[i].Samples = slices.Clone(e.Streams[i].Samples)
		}
		*end = &e
	}
	return &r
}

func decode(t testing.TB, name string) *transfer.Result {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var r transfer.Result
	if err := json.NewDecoder(unpacked).Decode(&r); err != nil {
		t.Fatal(err)
	}
	return &r
}

func BenchmarkJudge(b *testing.B) {
	r := recorded(b, "testdata/bottleneck_full-link-four-streams_19.9-Mbits-x-16.2-ms.json.gz")
	for b.Loop() {
		Judge(r)
	}
}
