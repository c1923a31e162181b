package web

import (
	"cmp"
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/ndt7"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	judge "github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// told is what a browser says of its test. Nothing in it is believed that this end's own
// account does not bear out; of its own program and of small packets only it can tell.
type told struct {
	Phases    []toldPhase `json:"phases"`
	IdleRTTMs []float64   `json:"idle_rtt_ms"`
}

type toldPhase struct {
	Name        string    `json:"name"` // down or up, and how many connections
	Connections int       `json:"connections"`
	Bytes       int64     `json:"bytes"` // of a download: that arrived
	FirstMs     float64   `json:"first_ms"`
	LastMs      float64   `json:"last_ms"`
	IdleRatio   float64   `json:"idle_ratio"` // of an upload: of the time, in which it had nothing queued
	LateRatio   float64   `json:"late_ratio"` // of an upload: of the time, in which it was to run and did not
	RTTMs       []float64 `json:"rtt_ms"`
}

// Bounds of what a browser may say.
const (
	mostTold   = 64 << 10 // bytes
	mostPhases = 4
	mostRTTs   = 500
	longestRTT = 60e3 // milliseconds
)

var phaseName = regexp.MustCompile(`^(down|up)[1-9]$`)

// resultPatience is how long the last connections may take to end after the page has.
const resultPatience = 6 * time.Second

// result makes the document of a run that has ended, keeps it, and answers it.
func (s *Speed) result(r *http.Request) (*record.Measure, error) {
	bad := func(what string) error { return &asked{http.StatusBadRequest, what, "the page /test"} }
	var said told
	body := json.NewDecoder(http.MaxBytesReader(nil, r.Body, mostTold))
	if err := body.Decode(&said); err != nil || len(said.Phases) > mostPhases || !sane(said.IdleRTTMs) {
		return nil, bad("what the test came to is malformed")
	}
	want := map[string]int{}
	for i := range said.Phases {
		p := &said.Phases[i]
		if !phaseName.MatchString(p.Name) || want[p.Name] != 0 || p.Connections < 1 || p.Connections > 9 || !sane(p.RTTMs) {
			return nil, bad("what the test came to is malformed")
		}
		want[p.Name] = p.Connections
	}
	one, err := s.runs.finish(r.PathValue("run"), want, resultPatience)
	if err != nil {
		return nil, &asked{http.StatusNotFound, err.Error(), "start the test again"}
	}
	doc := s.document(one, &said)
	if len(doc.Directions) == 0 {
		return nil, &asked{http.StatusConflict, "nothing was measured", "start the test again"}
	}
	doc.StartedAt = one.began.UTC()
	if s.cfg.Seal != nil {
		s.cfg.Seal(doc, time.Since(one.began))
	}
	if s.cfg.Keep != nil {
		if err := s.cfg.Keep(r.Context(), doc); err != nil && s.cfg.Note != nil {
			s.cfg.Note("a browser's result is not kept in the history: " + err.Error())
		}
	}
	if s.cfg.Done != nil {
		s.cfg.Done(doc)
	}
	for i := range doc.Directions {
		doc.Directions[i].Curves = record.DirectionCurves{} // a page shows none, and they are most of its memory
	}
	s.runs.hold(doc)
	return doc, nil
}

// sane says whether round trips can be some.
func sane(ms []float64) bool {
	return len(ms) <= mostRTTs && !slices.ContainsFunc(ms, func(v float64) bool { return !(v >= 0 && v <= longestRTT) })
}

// document makes one of a run, as this host saw it: up is what the browser downloaded.
func (s *Speed) document(one *speedRun, said *told) *record.Measure {
	doc := &record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1", Version: s.cfg.Version,
		StartedAt: one.began.UTC()}, Directions: []record.Direction{}}
	for i := range said.Phases {
		p := &said.Phases[i]
		tests := slices.DeleteFunc(slices.Clone(one.tests[p.Name]), func(t *ndt7.Test) bool {
			return t.Download != strings.HasPrefix(p.Name, "down") || len(t.Stream.Samples) == 0 || t.Stream.Bytes == 0
		})
		if len(tests) == 0 {
			continue
		}
		if doc.Peer == "" {
			doc.Peer = record.BrowserScheme + tests[0].Client.Addr().String()
			doc.Far = &record.Host{Address: tests[0].Client.Addr().String()}
		}
		d, near := direction(tests, p, said.IdleRTTMs)
		doc.Near = near
		doc.Directions = append(doc.Directions, d)
	}
	return doc
}

// direction judges one phase by this end's account, with what only the browser can tell.
func direction(tests []*ndt7.Test, p *toldPhase, idle []float64) (record.Direction, *record.Host) {
	slices.SortFunc(tests, func(a, b *ndt7.Test) int { return a.Started.Compare(b.Started) })
	r := &transfer.Result{Spec: transfer.Spec{Direction: transfer.Down, Streams: len(tests)}, Started: tests[0].Started,
		Near: &transfer.End{Kernel: socket.Kernel()}, Complete: true}
	for _, t := range tests {
		r.Near.Streams = append(r.Near.Streams, shifted(t.Stream, t.Started.Sub(r.Started)))
		r.Complete = r.Complete && t.Err == nil
	}
	if len(idle) > 0 {
		r.Latency = &transfer.Latency{Method: transfer.EchoMethod, Idle: durations(idle), Loaded: durations(p.RTTMs)}
	}
	if tests[0].Download {
		r.Spec.Direction = transfer.Up
		d := report.Direction(r, judge.Judge(r), nil)
		arrived(&d, r, p)
		return d, report.Host(r.Near)
	}
	span, _ := r.Received()
	idleShare := min(max(p.IdleRatio, 0), 1)
	late := min(max(p.LateRatio, 0), 1)
	if length := span.Duration(); length > 0 && !math.IsNaN(idleShare) && !math.IsNaN(late) {
		r.Far = &transfer.End{CPU: &transfer.CPU{RunqueueWait: late}, Streams: []transfer.Stream{{Last: length,
			Samples: []transfer.Sample{{At: length, Have: transfer.HaveProgram,
				Paused: time.Duration(idleShare * float64(length))}}}}}
	}
	v := judge.Judge(r)
	r.Far = nil // it says nothing else
	return report.Direction(r, v, nil), report.Host(r.Near)
}

// arrived puts what the browser counted in the place of what was acknowledged: counts are the
// receiver's, where they agree with ours.
func arrived(d *record.Direction, r *transfer.Result, p *toldPhase) {
	acked, ok := r.Received()
	length := time.Duration(cmp.Or(p.LastMs-p.FirstMs, 0) * float64(time.Millisecond))
	if !ok || p.Bytes <= 0 || p.Bytes > acked.Bytes+acked.Bytes/50 || p.Bytes < acked.Bytes*4/5 ||
		length < acked.Duration()*4/5 || length > acked.Duration()*6/5 {
		d.Warnings = append(d.Warnings, "what the browser counted does not agree with what it acknowledged, which is "+
			"what stands here")
		return
	}
	bps := float64(p.Bytes) * 8 / length.Seconds()
	seconds := length.Seconds()
	d.Bytes = &p.Bytes
	d.DurationS = &seconds
	d.GoodputBps = &bps
}

// shifted is a stream on a clock that began so much earlier.
func shifted(s transfer.Stream, by time.Duration) transfer.Stream {
	s.First = s.First + by
	s.Last = s.Last + by
	s.Samples = slices.Clone(s.Samples)
	for i := range s.Samples {
		s.Samples[i].At += by
	}
	return s
}

func durations(ms []float64) (all []time.Duration) {
	for _, v := range ms {
		all = append(all, time.Duration(v*float64(time.Millisecond)))
	}
	return all
}

// isResult says whether a request brings what a test came to, which is more than a form.
func isResult(path string) bool {
	return strings.Contains(path, "/test/") && strings.HasSuffix(path, "/result")
}
