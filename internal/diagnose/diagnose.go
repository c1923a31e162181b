// Package diagnose judges captures, connection by connection, and returns their record.
package diagnose

import (
	"cmp"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
	"github.com/fullpipe-net/fullpipe/internal/verdict/timeline"
)

// Diagnosis is a record without header and sentences, which report.Diagnose adds, and the timelines that it was judged
// from.
type Diagnosis struct {
	Record *record.Diagnose
	from   []judgement // of each connection of the record
	target string      // the system of the ends that limit; "": by their handshakes
}

// judgement is one connection's record with its timelines.
type judgement struct {
	record     record.CapturedConnection
	connection *flow.Connection
	directions []judgementOfDirection
}

type judgementOfDirection struct {
	flow      *flow.Direction
	diagnosis timeline.Diagnosis
}

// New judges what captures hold. Directions with fewer payload bytes than least are left
// out, and so are connections without any; where that leaves nothing, all stay.
func New(a *capture.Analysis, least int64) *Diagnosis {
	r := &record.Diagnose{Packets: a.Packets, Segments: a.Segments, Unmatched: a.Unwanted,
		Warnings: captureNotes(a), Connections: []record.CapturedConnection{},
		Files: []string{}}
	for _, f := range a.Files {
		r.Files = append(r.Files, f.Name)
	}
	worth := heavier(a.Connections, least)
	if len(worth) == 0 && least > 1 {
		return New(a, 1)
	}
	heaviest := heaviest(worth, maxJudged)
	if a.Dropped > 0 || len(heaviest) < len(worth) {
		r.Followed = int64(len(a.Connections))
		r.Seen = a.Dropped + r.Followed
	}
	all := judgeAll(heaviest, a.Connections, least)
	addRequests(r, all, a.Connections, len(a.Files) == 1)
	r.Trust = trustAll(a, all)
	slices.SortStableFunc(all, func(x, y judgement) int {
		a := x.record.Worst()
		b := y.record.Worst()
		return cmp.Or(cmp.Compare(b.LostS, a.LostS), cmp.Compare(b.Bytes, a.Bytes))
	})
	for i := range all {
		r.Connections = append(r.Connections, all[i].record)
	}
	r.Tiny = tiny(r.Connections)
	diagnosis := &Diagnosis{Record: r, from: all}
	diagnosis.Draw(a) // where this reading kept points already
	return diagnosis
}

// tiny reports whether there is nothing to diagnose: all that was sent fits the window that any
// connection begins with (RFC 6928), and only the time between programs' messages went by.
func tiny(all []record.CapturedConnection) bool {
	initial := int64(threshold.InitialSegments.Value) * 1460
	return len(all) > 0 && !slices.ContainsFunc(all, func(c record.CapturedConnection) bool {
		return slices.ContainsFunc(c.Directions, func(d record.CapturedDirection) bool {
			return d.Bytes > initial || d.Limiter != verdict.Unknown && d.Limiter != verdict.Application &&
				d.Limiter != verdict.SlowStart
		})
	})
}

func predictionOf(g *timeline.Diagnosis) *record.CapturedPrediction {
	p := g.Prediction
	if p == nil {
		return nil
	}
	return &record.CapturedPrediction{Limiter: p.Limiter, LowBps: p.LowBps, HighBps: p.HighBps, AtLeast: p.AtLeast}
}

// hosts are the two addresses that data goes between.
type hosts struct{ from, to netip.Addr }

func between(d *flow.Direction) hosts {
	return hosts{d.From.AddrPort().Addr(), d.To.AddrPort().Addr()}
}

// mostParallel bounds how many connections between two hosts are compared with each other.
const mostParallel = 64

// parallels lists the directions that carried something by their two hosts, and by either of them with a zero address
// for the other.
func parallels(all []*flow.Connection) map[hosts][]timeline.Parallel {
	const least = 100_000
	parallel := map[hosts][]timeline.Parallel{}
	for _, c := range all {
		for _, d := range c.Directions() {
			if d.Bytes >= least {
				note(parallel, timeline.NewParallel(c, d))
			}
		}
	}
	return parallel
}

// note adds a direction to the lists of its hosts.
func note(parallel map[hosts][]timeline.Parallel, one timeline.Parallel) {
	both := between(one.Direction)
	for _, key := range []hosts{both, {from: both.from}, {to: both.to}} {
		if len(parallel[key]) < mostParallel {
			parallel[key] = append(parallel[key], one)
		}
	}
}

// neighbours lists the directions that may share a link with d: those of either of its hosts.
func neighbours(d *flow.Direction, parallel map[hosts][]timeline.Parallel) (all []timeline.Parallel) {
	both := between(d)
	all = slices.Clip(parallel[both])
	for _, key := range []hosts{{from: both.from}, {to: both.to}} {
		for _, o := range parallel[key] {
			if between(o.Direction) != both {
				all = append(all, o)
			}
		}
	}
	return all
}

// maxJudged is the number of connections in a record: some 5 kB each, so that it can be read again
// (record.MostBytes).
const maxJudged = 10_000

// heavier returns the connections with a direction of at least these bytes, in their order.
func heavier(captured []*flow.Connection, least int64) (all []*flow.Connection) {
	for _, c := range captured {
		if slices.ContainsFunc(c.Directions(), func(d *flow.Direction) bool { return counts(d, least) }) {
			all = append(all, c)
		}
	}
	return all
}

// heaviest returns at most this many connections, those with the most bytes, in their order.
func heaviest(all []*flow.Connection, most int) []*flow.Connection {
	if len(all) <= most {
		return all
	}
	carried := make(map[*flow.Connection]int64, len(all))
	for _, c := range all {
		for _, d := range c.Directions() {
			carried[c] += d.Bytes
		}
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(x, y *flow.Connection) int { return cmp.Compare(carried[y], carried[x]) })
	for _, c := range sorted[most:] {
		delete(carried, c)
	}
	return slices.DeleteFunc(slices.Clone(all), func(c *flow.Connection) bool { _, kept := carried[c]; return !kept })
}

// judgeAll judges connections, in their order and on all processors. captured are all that were followed.
func judgeAll(all, captured []*flow.Connection, least int64) []judgement {
	out := make([]judgement, len(all))
	parallel := parallels(captured)
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(all)) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(all)); i = next.Add(1) - 1 {
				out[i] = judge(all[i], least, parallel)
			}
		})
	}
	wait.Wait()
	return out
}

// counts reports whether a direction is worth a verdict: it carried enough, or would have, had
// more than its small segments arrived.
func counts(d *flow.Direction, least int64) bool {
	return d.Bytes >= least || d.Wanted >= int64(d.MSS) && d.MaxSegment < d.MSS
}

func judge(c *flow.Connection, least int64, parallel map[hosts][]timeline.Parallel) judgement {
	out := judgement{connection: c}
	r := record.CapturedConnection{Client: c.Client().AddrPort().String(), Server: c.Server().AddrPort().String(),
		StartedAt: time.Unix(0, c.Started).UTC(), DurationS: float64(c.Ended) / 1e9, Vantage: "unknown"}
	r.Handshake = handshake(c)
	for _, d := range c.Directions() {
		if !counts(d, least) {
			continue
		}
		g := timeline.Judge(c, d, neighbours(d, parallel)...)
		r.Directions = append(r.Directions, direction(c, d, &g))
		out.directions = append(out.directions, judgementOfDirection{d, g})
		r.Vantage = vantageOf(c, d, g.Vantage, r.Vantage)
	}
	note := func(code verdict.NoteCode) { r.Notes = append(r.Notes, verdict.Note{Code: code}) }
	switch {
	case !c.SYN && !c.SYNACK:
		note(verdict.NoHandshake)
	case !c.SYN:
		note(verdict.NoSYN)
	case !c.SYNACK:
		note(verdict.NoSYNACK)
	}
	if c.Renumbered {
		note(verdict.BothSidesOfBox)
	}
	if c.ClientOffer().OptionsCut || c.ServerOffer().OptionsCut {
		note(verdict.OptionsCut)
	}
	out.record = r
	return out
}

// vantageOf returns the end of the connection at which the tap was, as one direction shows it.
func vantageOf(c *flow.Connection, d *flow.Direction, v timeline.Vantage, before string) string {
	fromClient := d.From == c.Client()
	switch {
	case v == timeline.VantageUnknown || before != "unknown":
		return before
	case v == timeline.InTheMiddle:
		return "middle"
	case (v == timeline.AtSender) == fromClient:
		return "client"
	}
	return "server"
}

func handshake(c *flow.Connection) *record.CapturedHandshake {
	client := c.ClientOffer()
	server := c.ServerOffer()
	if !client.Seen && !server.Seen {
		return nil
	}
	h := &record.CapturedHandshake{MSS: map[string]int{}, WindowScale: map[string]int{}}
	for name, o := range map[string]flow.Offer{"client": client, "server": server} {
		if o.MSS > 0 {
			h.MSS[name] = o.MSS
		}
		if o.Scale >= 0 {
			h.WindowScale[name] = o.Scale
		}
	}
	if client.Seen && server.Seen && !client.OptionsCut && !server.OptionsCut {
		sack := client.SACK && server.SACK
		timestamps := client.Timestamps && server.Timestamps
		h.SACK = &sack
		h.Timestamps = &timestamps
	}
	return h
}

func direction(c *flow.Connection, d *flow.Direction, g *timeline.Diagnosis) record.CapturedDirection {
	r := record.CapturedDirection{From: d.From.AddrPort().String(), To: d.To.AddrPort().String(), Bytes: d.Bytes,
		DurationS: float64(d.Last-d.First) / 1e9,
		Segments:  d.Segments, RetransmittedSegment: d.Retransmitted, OutstandingMaxBytes: d.MaxOut,
		LostS: g.LostTime.Seconds(), SYNWaitS: g.SYNWait.Seconds(),
		TapAt: string(g.Vantage), Trust: &g.Trust, Verdict: g.Verdict, ShownBytes: d.Shown()}
	if r.Evidence == nil {
		r.Evidence = []verdict.Evidence{}
	}
	if g.GoodputBps > 0 {
		r.GoodputBps = new(g.GoodputBps)
	}
	if d.RTTMin > 0 {
		least := float64(d.RTTMin) / 1e9
		most := float64(d.RTTMax) / 1e9
		r.RTTMinS = &least
		r.RTTMaxS = &most
	}
	r.SpuriousSegments = d.Spurious
	r.OutOfOrderSegments = d.OutOfOrder
	r.Timeouts = d.Timeouts
	r.UncapturedBytes = d.Unseen
	if d.MSS > 0 {
		r.MSSBytes = new(d.MSS)
	}
	if d.WindowMax > 0 {
		r.WindowMaxBytes = new(d.WindowMax)
	}
	if d.ScaleKnown {
		r.WindowScale = new(d.Scale)
	}
	r.Prediction = predictionOf(g)
	r.Settings = settings(c, d, g, "")
	r.Fix = fixes(&r, g, c, d, "")
	r.Program = programWindow(c, d, g)
	return r
}
