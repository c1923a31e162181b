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

// browserReport is a browser's report of its test. Byte counts are accepted only if they agree with the server's own.
// Only the browser measures its own idle and late times and the RTT of small packets.
type browserReport struct {
	Phases    []browserPhase `json:"phases"`
	IdleRTTMs []float64      `json:"idle_rtt_ms"`
}

type browserPhase struct {
	Name        string    `json:"name"` // down or up, followed by the number of connections
	Connections int       `json:"connections"`
	Bytes       int64     `json:"bytes"` // received bytes of a download
	FirstMs     float64   `json:"first_ms"`
	LastMs      float64   `json:"last_ms"`
	IdleRatio   float64   `json:"idle_ratio"` // of an upload: share of the time with nothing queued
	LateRatio   float64   `json:"late_ratio"` // of an upload: share of the time in which its timer was late
	RTTMs       []float64 `json:"rtt_ms"`
	RTTAtMs     []float64 `json:"rtt_at_ms"` // of each RTT: its end, since FirstMs
}

// Limits of a browser's report.
const (
	maxReportBytes = 64 << 10 // bytes
	maxPhases      = 4
	maxRTTs        = 500
	maxRTT         = 60e3 // milliseconds
)

var phaseName = regexp.MustCompile(`^(down|up)[1-9]$`)

// resultTimeout is the maximum wait for connections that are still open when the report arrives.
const resultTimeout = 6 * time.Second

// result returns the document of a run that has ended, and stores it.
func (s *Speed) result(r *http.Request) (*record.Measure, error) {
	bad := func(message string) error { return &requestError{http.StatusBadRequest, message, "the page /test"} }
	var received browserReport
	body := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxReportBytes))
	if err := body.Decode(&received); err != nil || len(received.Phases) > maxPhases ||
		!plausibleRTTs(received.IdleRTTMs) {
		return nil, bad("the report of the test is malformed")
	}
	want := map[string]int{}
	for i := range received.Phases {
		p := &received.Phases[i]
		if !phaseName.MatchString(p.Name) || want[p.Name] != 0 || p.Connections < 1 || p.Connections > 9 ||
			!plausibleRTTs(p.RTTMs) || !plausibleRTTs(p.RTTAtMs) {
			return nil, bad("the report of the test is malformed")
		}
		want[p.Name] = p.Connections
	}
	one, err := s.runs.finish(r.PathValue("run"), want, resultTimeout)
	if err != nil {
		return nil, &requestError{http.StatusNotFound, err.Error(), "start the test again"}
	}
	doc := s.document(one, &received)
	if len(doc.Directions) == 0 {
		return nil, &requestError{http.StatusConflict, "nothing was measured", "start the test again"}
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
		d := &doc.Directions[i] // the page shows the probes only; the other curves take most of a document's memory
		d.Curves = record.DirectionCurves{Probes: d.Curves.Probes}
	}
	s.runs.addResult(doc)
	return doc, nil
}

// plausibleRTTs reports whether the RTTs are plausible, in number and size.
func plausibleRTTs(ms []float64) bool {
	return len(ms) <= maxRTTs && !slices.ContainsFunc(ms, func(v float64) bool { return !(v >= 0 && v <= maxRTT) })
}

// document returns the document of a run from this host's side: up is the browser's download.
func (s *Speed) document(one *speedRun, received *browserReport) *record.Measure {
	doc := &record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1", Version: s.cfg.Version,
		StartedAt: one.began.UTC()}, Directions: []record.Direction{}}
	for i := range received.Phases {
		p := &received.Phases[i]
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
		d, near := direction(tests, p, received.IdleRTTMs)
		doc.Near = near
		doc.Directions = append(doc.Directions, d)
	}
	return doc
}

// direction returns the verdict of one phase from this host's samples and the browser's idle time, late time and RTTs.
func direction(tests []*ndt7.Test, p *browserPhase, idle []float64) (record.Direction, *record.Host) {
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
		d := report.Direction(r, judge.Judge(r), intervalsOf(r.Near.Streams, true))
		d.Curves.Probes = probesOf(p)
		useBrowserCounts(&d, r, p)
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
	r.Far = nil // it has no other data of the far end
	d := report.Direction(r, v, intervalsOf(r.Near.Streams, false))
	d.Curves.Probes = probesOf(p)
	return d, report.Host(r.Near)
}

// useBrowserCounts replaces the acknowledged bytes and duration by the browser's if the two agree, since the receiver's
// counts are preferred.
func useBrowserCounts(d *record.Direction, r *transfer.Result, p *browserPhase) {
	acked, ok := r.Received()
	length := time.Duration(cmp.Or(p.LastMs-p.FirstMs, 0) * float64(time.Millisecond))
	if !ok || p.Bytes <= 0 || p.Bytes > acked.Bytes+acked.Bytes/50 || p.Bytes < acked.Bytes*4/5 ||
		length < acked.Duration()*4/5 || length > acked.Duration()*6/5 {
		d.Warnings = append(d.Warnings, "the browser's byte count disagrees with the acknowledged bytes; "+
			"these figures are from the acknowledgements")
		return
	}
	bps := float64(p.Bytes) * 8 / length.Seconds()
	seconds := length.Seconds()
	d.Bytes = &p.Bytes
	d.DurationS = &seconds
	d.GoodputBps = &bps
}

// shifted returns the stream with by added to its times.
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

// isResult reports whether a path is that of a test's report, whose body may be larger than a form.
func isResult(path string) bool {
	return strings.Contains(path, "/test/") && strings.HasSuffix(path, "/result")
}
