package store

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store/pgtest"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// BenchmarkFleet_AddResult stores results of 9 kB, on the disk, from as many goroutines as a hub has. The results are
// of 1,000 agents with six neighbours each.
func BenchmarkFleet_AddResult(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { benchmarkAddResult(b, "") })
	b.Run("postgres", func(b *testing.B) { benchmarkAddResult(b, pgtest.StartDurable(b).URL(b)) })
}

func benchmarkAddResult(b *testing.B, url string) {
	const agents, neighbours, writers = 1000, 6, 8
	f := must.Get(OpenFleet(b.Context(), b.TempDir(), url))(b)
	defer f.Close()
	lead := must.Get(f.TakeLead(b.Context(), "one", time.Hour))(b)
	type result struct {
		near string
		doc  []byte
	}
	results := make(chan result, b.N)
	var jobs []Job
	var grants []Grant
	now := time.Now()
	bps := 1e8
	for i := range b.N {
		at := i % (agents * neighbours)
		near := fmt.Sprintf("a%05d", at/neighbours)
		far := fmt.Sprintf("a%05d", (at/neighbours+1+at%neighbours)%agents)
		var random [10]byte
		binary.BigEndian.PutUint64(random[:], uint64(i))
		id := record.NewID(now, random)
		a, z := min(near, far), max(near, far)
		jobs = append(jobs, Job{ID: id, Pair: a + " " + z, Task: "t", A: a, B: z, Origin: record.Scheduled, Due: now,
			Late: now})
		grants = append(grants, Grant{ID: id, Near: near, Lasts: time.Minute})
		directions := []record.Direction{{Direction: "up", GoodputBps: &bps, Streams: []record.Stream{},
			Warnings: []string{strings.Repeat("x", 8000)}}, {Direction: "down", GoodputBps: &bps, Streams: []record.Stream{}}}
		doc, err := record.Encode(&record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1", Version: "test",
			StartedAt: now, Envelope: &record.Envelope{ID: id, TestID: id, Origin: record.Scheduled, Outcome: record.Done,
				PathKey: FleetPathKey("t", near, far), Labels: map[string]string{"task": "t"}}}, Peer: far,
			Directions: directions})
		if err != nil {
			b.Fatal(err)
		}
		results <- result{near, doc}
	}
	close(results)
	must.Do(b, f.Due(b.Context(), lead, jobs, nil))
	must.Get(f.Grant(b.Context(), lead, now, grants...))(b)
	b.ResetTimer()
	var work sync.WaitGroup
	for range writers {
		work.Go(func() {
			for r := range results {
				if _, err := f.AddResult(b.Context(), r.near, r.doc, now); err != nil {
					b.Error(err)
				}
			}
		})
	}
	work.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "results/s")
}
