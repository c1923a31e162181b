package live

import (
	"maps"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// knownWindow attributes what a watched receiver left unknown to the sending program's own window. In both halves of
// the span, the most bytes that came in a round trip must be a window that known reports for the connection's ports: no
// more than the window comes in one, and less where the programs of a busy host are late.
// This end's program must send messages all the time, its receive window must have room, and nothing may show a loss
// or a standing queue: a full line shows one or the other.
func knownWindow(w *watchedDirection, v verdict.Verdict, known func(bytes float64) bool) verdict.Verdict {
	const have = transfer.HaveReceived | transfer.HaveMinRTT | transfer.HaveRTT | transfer.HaveReceiveWnd
	n := len(w.Samples)
	if w.Sends || known == nil || v.Limiter != verdict.Unknown || n < 3 || common(w.Samples)&have != have {
		return v
	}
	first := &w.Samples[0]
	last := &w.Samples[n-1]
	e := w.exchange()
	messages := 0.0
	room := last.ReceiveWnd
	var loaded time.Duration
	for i := range w.Samples {
		s := &w.Samples[i]
		if i > 0 && s.Sent > w.Samples[i-1].Sent {
			messages++
		}
		if i >= n/2 {
			room = min(room, s.ReceiveWnd)
		}
		loaded += s.RTT / time.Duration(n)
	}
	mean := e.came / max(e.span, 1e-6) * e.rtt
	early := mostInRoundTrip(w.Samples[:n/2+1], least(w.Samples))
	late := mostInRoundTrip(w.Samples[n/2:], least(w.Samples))
	window := max(early, late)
	rounds := min(e.span/max(e.rtt, 1e-6), float64(n-1))
	if e.rtt <= 0 || last.RcvOOOPack > first.RcvOOOPack || showsQueue(e.rtt, loaded.Seconds()) ||
		rounds < threshold.MinRounds.Value || messages < threshold.ExchangesRestart.Value*rounds ||
		float64(room) < threshold.ProgramWindowRoom.Value*window ||
		mean < threshold.WatchedFlat.Value*window || !known(early) || !known(late) {
		return v
	}
	share := v.Shares[verdict.Unknown]
	v.Shares = maps.Clone(v.Shares)
	delete(v.Shares, verdict.Unknown)
	v.Shares[verdict.Application] += share
	v.Limiter = verdict.Application
	v.Subtype = verdict.ProgramWindow
	v.Confidence = verdict.Medium
	if !known(mean) {
		v.Confidence = verdict.Low
	}
	v.Candidates = nil
	v.Evidence = slices.DeleteFunc(slices.Clone(v.Evidence), func(e verdict.Evidence) bool {
		return e.Code == verdict.SenderUnseen
	})
	v.Evidence = slices.Insert(v.Evidence, 0, verdict.Evidence{Limiter: verdict.Application,
		Code: verdict.WatchedProgramWindow, Values: verdict.Values{"time_ratio": share, "program_window_bytes": window,
			"window_bytes": float64(room), "rtt_s": e.rtt, "came_bps": 8 * e.came / e.span}})
	return v
}

// mostInRoundTrip returns the most bytes that came in a round trip, as the mean of some: between two samples the
// arrivals are taken for even, and one round trip's may be off by those of a sample.
func mostInRoundTrip(samples []transfer.Sample, rtt time.Duration) (most float64) {
	const rounds = 4
	end := 0
	for i := range samples {
		until := samples[i].At + rounds*rtt
		for end+1 < len(samples) && samples[end+1].At < until {
			end++
		}
		if end+1 == len(samples) {
			break
		}
		a := &samples[end]
		b := &samples[end+1]
		part := float64(until-a.At) / max(float64(b.At-a.At), 1)
		most = max(most, float64(a.Received-samples[i].Received)+part*float64(b.Received-a.Received))
	}
	return most / rounds
}
