package recheck

import (
	"fmt"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// ResultOf returns the result of a measured document; of one that is not done, the cost alone.
func ResultOf(doc *record.Measure) Result {
	r := Result{At: doc.StartedAt}
	if doc.Far != nil {
		r.FarKernel = doc.Far.Kernel
	}
	took := 0.0
	for i := range doc.Directions {
		d := &doc.Directions[i]
		if d.Bytes != nil {
			r.Cost.Bytes += *d.Bytes
		}
		if d.DurationS != nil {
			took += *d.DurationS
		}
		r.Directions = append(r.Directions, directionOf(d))
	}
	done := doc.Error == nil
	if e := doc.Envelope; e != nil {
		r.RunID = e.ID
		r.Retest = e.Origin == record.Retest
		done = e.Outcome == record.Done
		if e.TookS != nil {
			took = *e.TookS
		}
	}
	r.Cost.Time = units.Seconds(took)
	if !done {
		r.Directions = nil
	}
	return r
}

func directionOf(d *record.Direction) Direction {
	out := Direction{Name: string(d.Direction), RTTMin: time.Duration(d.RTTMin), Limiter: string(d.Limiter)}
	if d.GoodputBps != nil {
		out.GoodputBps = *d.GoodputBps
	}
	switch {
	case d.PathMTUBytes > 0:
		out.MTU = fmt.Sprintf("%d bytes", d.PathMTUBytes)
	case d.MSSBytes > 0:
		out.MTU = fmt.Sprintf("%d bytes of payload", d.MSSBytes)
	}
	if d.SACK == nil || d.Timestamps == nil {
		return out
	}
	options := []string{"no window scale"} // the shift differs from host to host, and with its memory
	if d.WindowScale != nil {
		options[0] = "window scale"
	}
	for _, o := range []struct {
		name string
		has  bool
	}{{"SACK", *d.SACK}, {"timestamps", *d.Timestamps}} {
		if !o.has {
			o.name = "no " + o.name
		}
		options = append(options, o.name)
	}
	out.Handshake = strings.Join(options, ", ")
	return out
}

// ResultOfRun returns the result of a run from a list of the history: levels and limiters.
func ResultOfRun(run *record.HistoryRun) Result {
	r := Result{RunID: run.ID, At: run.StartedAt, Retest: run.Origin == record.Retest}
	if run.Outcome != record.Done {
		return r
	}
	for _, f := range run.Directions {
		d := Direction{Name: f.Direction, Limiter: f.Limiter}
		if f.GoodputBps != nil {
			d.GoodputBps = *f.GoodputBps
		}
		if f.RTTMinS != nil {
			d.RTTMin = units.Seconds(*f.RTTMinS)
		}
		r.Directions = append(r.Directions, d)
	}
	return r
}

// Visit is one test of a path, or one that was due and skipped.
type Visit struct {
	Peer   string
	At     time.Time
	Retest bool
	// Late reports that an earlier process ran the test and ended before it reported: only its Events are new.
	Late   bool
	Skip   Skip  // why it was skipped; "": it was not
	Err    error // of the test
	Result *Result
	Path   *Detector             // as it is now
	Events []record.RecheckEvent // without Far, Plan and Text
	Next   time.Time             // zero: not by this process
}
