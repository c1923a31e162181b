package rfc6349

import (
	"context"
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Frames asks for the largest rate of frames of some sizes, searched as RFC 2544 section
// 26.1 does. Its zero value asks for none.
type Frames struct {
	// Sizes of Ethernet frames in bytes, from the destination address to the check
	// sequence: 18 more than the IP packet.
	Sizes []int
	Loss  float64       // share of a trial's frames that may be lost; the RFC allows none
	Time  time.Duration // of a trial; 0: a second. The RFC asks for 60 s
}

// EthernetBytes are a frame's header and check sequence.
const EthernetBytes = 18

// gapBytes are the preamble and the gap that follow each frame on an Ethernet line.
const gapBytes = 20

// FrameSizes are those of RFC 2544 section 9.1 for Ethernet.
func FrameSizes() []int { return []int{64, 128, 256, 512, 1024, 1280, 1518} }

// AdvisedTrial is the length of a throughput trial in section 24.
const AdvisedTrial = 60 * time.Second

const (
	frameTrials   = 10
	frameClose    = 1.02 // a search ends when its bounds are this close
	minUDPPayload = 16   // payload that a trial's counters need
	minTrialTime  = 250 * time.Millisecond
	trialOverhead = 400 * time.Millisecond // overhead of a trial, without its own time
)

func (f Frames) withDefaults() Frames {
	if f.Time == 0 {
		f.Time = time.Second
	}
	return f
}

func (f Frames) expected() time.Duration {
	return time.Duration(len(f.Sizes)*7) * (f.withDefaults().Time + trialOverhead)
}

// frames searches each size in turn; later directions still to come share what is left
// of the budget.
func (t *tester) frames(ctx context.Context, d *Direction, later int) error {
	sizes := t.cfg.Frames.Sizes
	for i, size := range sizes {
		f := Frame{FrameBytes: size}
		until := time.Duration(math.MaxInt64)
		if t.cfg.Budget > 0 {
			share := max(t.cfg.Budget-t.elapsed(), 0) / time.Duration(len(sizes)-i+later*len(sizes))
			until = t.elapsed() + share
			t.out.TrialTime = min(t.cfg.Frames.Time, max(share/6-trialOverhead, minTrialTime))
		}
		err := t.frame(ctx, d, &f, until)
		d.Frames = append(d.Frames, f)
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *tester) frame(ctx context.Context, d *Direction, f *Frame, until time.Duration) error {
	packet := f.FrameBytes - EthernetBytes
	payload := packet - t.udpHeaders()
	switch {
	case !t.carriesUDP():
		f.Skipped.Code = NoUDP
	case payload < minUDPPayload:
		f.Skipped = Statement{Code: FrameTooSmall, Values: verdict.Values{"payload_bytes": float64(max(payload, 0)),
			"needed_bytes": minUDPPayload}}
	case t.out.Path.MTU > 0 && packet > t.out.Path.MTU:
		f.Skipped = Statement{Code: FrameExceedsMTU, Values: verdict.Values{"packet_bytes": float64(packet),
			"mtu_bytes": float64(t.out.Path.MTU)}}
	case t.budgetSpent():
		f.Skipped.Code = BudgetSpent
	}
	if f.Skipped.Code != "" {
		return nil
	}
	spec := transfer.DatagramSpec{Direction: d.Direction, Size: payload, Time: t.out.TrialTime, DontFragment: true}
	line := t.line(d, packet)
	s := bisection{high: line, next: line}
	for !s.done() && !(t.elapsed() >= until && len(f.Trials) > 1) {
		t.report(d, Statement{Code: OfferingFrames, Values: verdict.Values{"frame_bytes": float64(f.FrameBytes),
			"per_s": s.next / 8 / float64(packet)}})
		trial, err := t.datagrams(ctx, spec, s.next)
		if err != nil {
			if len(f.Trials) == 0 && ctx.Err() == nil {
				f.Skipped = Statement{Code: Refused, Cause: err.Error()}
				return nil
			}
			return err
		}
		f.Trials = append(f.Trials, trial)
		s.observe(trial, t.cfg.Frames.Loss)
		fps := func(bps float64) float64 { return bps / 8 / float64(packet) }
		t.mostFPS = max(t.mostFPS, fps(trial.ReceivedBps))
	}
	f.AtLeast = s.low >= line
	f.SenderLimited = s.senderLimited
	if s.sent > 0 {
		f.LossRatio = &s.loss
	}
	f.FramesPerSec = s.sent / 8 / float64(packet)
	f.Bps = f.FramesPerSec * 8 * float64(f.FrameBytes)
	f.FailedPerSec = s.failed / 8 / float64(packet)
	return nil
}

// line returns the rate at the IP layer of smaller packets on a line that carries full ones at
// the bottleneck's rate and counts no framing. The search begins there.
func (t *tester) line(d *Direction, packet int) float64 {
	top := d.Bottleneck.Bps
	if d.CommittedBps > 0 {
		due := d.CommittedBps * float64(packet) / float64(packet+t.cfg.Overhead)
		top = max(top, due)
	}
	return 1.01 * top
}

// bisection halves the span between the largest rate that got through and the smallest that did not. Rates are in
// bit/s at the IP layer.
type bisection struct {
	low, high, next float64
	sent, loss      float64 // of the best trial: the rate that the line carried
	failed          float64 // least rate with too much loss
	behind          int     // trials in a row in which the sender sent too little
	senderLimited   bool    // the sender cannot send more
	doubted         bool    // the last trial lost too much and is being repeated
	trials          int
}

func (s *bisection) done() bool {
	settled := s.trials > 0 && !s.doubted && s.behind == 0 && s.high <= s.low*frameClose
	return settled || s.senderLimited || s.trials >= frameTrials
}

func (s *bisection) observe(trial Datagrams, allowed float64) {
	s.trials++
	carried := min(trial.SentBps, trial.ReceivedBps/(1-trial.LossRatio))
	// A queue longer than the trial loses nothing: frames that arrive later than they were sent
	// are above the line's rate too.
	clean := trial.LossRatio <= allowed && carried*frameClose >= trial.SentBps
	if clean && carried > s.sent {
		s.sent = carried
		s.loss = trial.LossRatio
	}
	// A sender that is behind shows nothing about the offered rate.
	if trial.SentBps < 0.95*trial.OfferedBps {
		s.behind++
		s.senderLimited = s.behind == 2
		return
	}
	s.behind = 0
	if !clean && !s.doubted {
		s.doubted = true // a short pause of a host loses too: repeat the trial
		return
	}
	s.doubted = false
	if clean {
		s.low = max(s.low, min(carried, trial.OfferedBps))
		s.next = (s.low + s.high) / 2
		return
	}
	first := s.failed == 0
	s.failed = trial.OfferedBps
	s.high = max(trial.OfferedBps, s.low)
	s.next = (s.low + s.high) / 2
	// The received rate of a full link is its capacity: try a little less next.
	if guess := 0.99 * trial.ReceivedBps; first && guess > s.next {
		s.next = guess
	}
}

// judgeFrame judges the result of a frame size. Two hosts do not show whether their own packet
// rate or the line's is the limit: a shortage is the line's only if the hosts have carried
// more frames a second.
func (t *tester) judgeFrame(d *Direction, f *Frame) {
	if f.Skipped.Code != "" || len(f.Trials) == 0 {
		f.Verdict = Inconclusive
		f.Reason = Statement{Code: NotMeasured, Because: &f.Skipped}
		return
	}
	packet := float64(f.FrameBytes - EthernetBytes)
	reference := d.ReferenceBps
	overhead := float64(d.ReferenceOverhead)
	f.Due = reference / 8 / (packet + overhead)
	if d.CommittedBps == 0 {
		// The bottleneck was found with full packets; a line that counts Ethernet's
		// framing carries fewer bits of small ones, and that is no fault.
		whole := float64(t.datagram() + t.udpHeaders())
		f.Due = reference / 8 * (whole + EthernetBytes + gapBytes) / whole / (packet + EthernetBytes + gapBytes)
	}
	required := f.Due * (1 - t.cfg.Tolerance)
	f.Reason.Values = verdict.Values{"per_s": f.FramesPerSec, "due_per_s": f.Due, "failed_per_s": f.FailedPerSec,
		"most_per_s": t.mostFPS}
	f.Verdict = Inconclusive
	switch {
	case f.FramesPerSec >= required:
		f.Verdict = Pass
		f.Reason.Code = FrameRateMet
	case f.SenderLimited:
		f.Reason.Code = FrameSenderLimit
	case f.FailedPerSec == 0 || f.FailedPerSec > required:
		f.Reason.Code = FrameSearchUnfinished
	case f.FailedPerSec < 0.9*t.mostFPS:
		f.Verdict = Fail
		f.Reason.Code = FrameLoss
	default:
		f.Reason.Code = FrameLimitUnknown
	}
	if d.CommittedBps == 0 && f.Verdict == Fail {
		f.Verdict = Inconclusive
	}
}
