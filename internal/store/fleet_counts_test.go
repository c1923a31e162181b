package store

import (
	"database/sql"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// countedDocument returns the document of a run from a to b with the payload of both directions.
func countedDocument(t *testing.T, id string, up, down int64) []byte {
	t.Helper()
	bps := 1e8
	doc, err := record.Encode(&record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1", Version: "test",
		StartedAt: begin, Envelope: &record.Envelope{ID: id, TestID: id, Origin: record.Scheduled, Outcome: record.Done,
			PathKey: FleetPathKey("t", "a", "b")}}, Peer: "b", Directions: []record.Direction{
		{Direction: transfer.Up, GoodputBps: &bps, Bytes: &up, Streams: []record.Stream{}},
		{Direction: transfer.Down, GoodputBps: &bps, Bytes: &down, Streams: []record.Stream{}}}})
	must.Do(t, err)
	return doc
}

// atRate returns the far agent's count of payload at the rate of countedDocument.
func atRate(bytes int64) FarCount {
	return FarCount{bytes, time.Duration(8 * float64(bytes) / 1e8 * float64(time.Second))}
}

// TestFleet_Unconfirmed compares the near agent's document with the far agent's counts, in either order of arrival.
func TestFleet_Unconfirmed(t *testing.T) {
	const mb = 1 << 20
	bothFleets(t, func(t *testing.T, at func() *Fleet) {
		f := at()
		cases := []struct {
			name         string
			agent        string // that reports; "": none
			up, down     int64  // by it; the document has 100 MB up and 200 MB down
			want         string // of the run
			onUp, onDown string // of the grid
		}{
			{"both agree", "b", 100 * mb, 200 * mb, "", "", ""},
			{"payload in flight", "b", 100 * mb, 196 * mb, "", "", ""},
			{"nobody reports", "", 0, 0, OneEnd, OneEnd, OneEnd},
			{"the near agent itself reports", "a", 100 * mb, 200 * mb, OneEnd, OneEnd, OneEnd},
			{"a third agent reports", "c", 100 * mb, 200 * mb, OneEnd, OneEnd, OneEnd},
			{"one direction was not counted", "b", 100 * mb, -1, OneEnd, "", OneEnd},
			{"up is invented", "b", 10 * mb, 200 * mb, CountsDiffer, CountsDiffer, ""},
			{"down is invented", "b", 100 * mb, 20 * mb, CountsDiffer, "", CountsDiffer},
			{"up is hidden", "b", 300 * mb, 200 * mb, CountsDiffer, CountsDiffer, ""},
			{"nothing was served", "b", 0, 0, CountsDiffer, CountsDiffer, CountsDiffer},
		}
		for i, id := range someGranted(t, f, 2*len(cases)) {
			c := cases[i%len(cases)]
			serve := func() {
				if c.agent != "" {
					must.Do(t, f.AddServed(t.Context(), c.agent, id, atRate(c.up), atRate(c.down)))
				}
			}
			early := i < len(cases)
			if early {
				serve()
			}
			job, err := f.AddResult(t.Context(), "a", countedDocument(t, id, 100*mb, 200*mb), begin)
			must.Do(t, err)
			if early && job.Unconfirmed() != c.want {
				t.Errorf("%s: %q at its arrival, want %q", c.name, job.Unconfirmed(), c.want)
			}
			if !early {
				serve()
			}
			must.Do(t, f.AddServed(t.Context(), "b", "another run", atRate(1), atRate(1)))
			job, err = f.Job(t.Context(), id)
			if err != nil || job.State != mesh.Done || job.Unconfirmed() != c.want {
				t.Errorf("%s: %s %q, %v, want %q", c.name, job.State, job.Unconfirmed(), err, c.want)
			}
			cells, err := f.Grid(t.Context(), "t")
			if err != nil || len(cells) != 2 || cells[0].Unconfirmed != c.onUp || cells[1].Unconfirmed != c.onDown {
				t.Errorf("%s: the grid has %+v, %v", c.name, cells, err)
			}
			if c.agent == "b" { // the first report stays
				must.Do(t, f.AddServed(t.Context(), "b", id, atRate(1), atRate(1)))
				again, err := f.Job(t.Context(), id)
				if err != nil || again.Counts != job.Counts {
					t.Errorf("%s: %+v after a second report, %v", c.name, again.Counts, err)
				}
			}
		}
	})
}

// TestUnconfirmed_SmallTransfers checks that the payload in flight of a small transfer is no difference.
func TestUnconfirmed_SmallTransfers(t *testing.T) {
	count := func(n int64) sql.NullInt64 { return sql.NullInt64{Int64: n, Valid: true} }
	for _, c := range []struct {
		near, far sql.NullInt64
		want      string
	}{
		{count(300_000), count(100_000), ""},
		{count(600_000), count(100_000), CountsDiffer},
		{sql.NullInt64{}, count(1), ""},
		{sql.NullInt64{}, sql.NullInt64{}, ""},
		{count(0), sql.NullInt64{}, OneEnd},
	} {
		if got := (direction{near: c.near, far: c.far}).unconfirmed(); got != c.want {
			t.Errorf("%v and %v: %q, want %q", c.near, c.far, got, c.want)
		}
	}
}

// TestUnconfirmed_Times compares the goodput of a document with the far agent's bytes and time.
func TestUnconfirmed_Times(t *testing.T) {
	for name, c := range map[string]struct {
		bytes int64
		bps   float64
		span  time.Duration
		want  string
	}{
		"honest":                  {125e6, 1e9, time.Second, ""},
		"honest, 5 s":             {5e6, 8.2e6, 4950 * time.Millisecond, ""},
		"9 % off":                 {125e6, 0.92e9, time.Second, ""},
		"a tenth":                 {125e6, 1e8, time.Second, TimesDiffer},
		"1.2 times":               {125e6, 1.2e9, time.Second, TimesDiffer},
		"0.8 times":               {125e6, 0.8e9, time.Second, TimesDiffer},
		"ten times":               {125e6, 1e10, time.Second, TimesDiffer},
		"nothing":                 {125e6, 0, time.Second, TimesDiffer},
		"denormal":                {125e6, 5e-324, time.Second, TimesDiffer},
		"no time of the far end":  {125e6, 1e9, 0, OneEnd},
		"short and honest":        {100e6, 1e10, 80 * time.Millisecond, TooShort},
		"short, a tenth":          {100e6, 1e9, 80 * time.Millisecond, TimesDiffer},
		"short, in one read":      {1000, 0, time.Millisecond, TooShort},
		"long and small, honest":  {100e3, 80e3, 10 * time.Second, TooShort},
		"long and small, a tenth": {100e3, 8e3, 10 * time.Second, TimesDiffer},
	} {
		n := sql.NullInt64{Int64: c.bytes, Valid: true}
		d := direction{near: n, far: n, bps: sql.NullFloat64{Float64: c.bps, Valid: true},
			span: sql.NullInt64{Int64: int64(c.span), Valid: c.span > 0}}
		if got := d.unconfirmed(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestDoubtful checks which results have a mark in grids and lists: not the short ones of fast networks.
func TestDoubtful(t *testing.T) {
	for why, want := range map[string]bool{"": false, TooShort: false, OneEnd: true, TimesDiffer: true,
		CountsDiffer: true} {
		if Doubtful(why) != want {
			t.Errorf("%q: %v", why, !want)
		}
	}
}
