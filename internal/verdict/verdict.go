// Package verdict defines the result of every judge of a TCP transfer: the limiter by its name, the shares of time,
// the evidence as codes with values, and the confidence. The judges are its sub-packages: live (samples of the two
// ends, or of a watched socket), timeline (captures) and compare (two paths to one far end). Their thresholds are in
// package threshold. Package render/text makes sentences from the codes.
//
// One sentence defines the word limiter, here and in every test: X limits a transfer if
// taking X away would raise its goodput by 10 % or more. A full window is therefore not
// always a limiting one.
package verdict

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// Name is one word of the closed vocabulary.
type Name string

const (
	Application         Name = "application" // the sending program does not write
	SendBuffer          Name = "send-buffer" // SO_SNDBUF or the sender's own rule
	ReceiverWindow      Name = "receiver-window"
	ReceiverApplication Name = "receiver-application" // the receiving program does not read
	Congestion          Name = "congestion"           // loss recovery and the congestion window
	Bottleneck          Name = "bottleneck"           // a full link
	LocalQueue          Name = "local-queue"          // this host's shaper or driver
	AckPath             Name = "ack-path"             // thinned or starved acknowledgements
	SlowStart           Name = "slow-start"           // the transfer is too short to get going
	NagleDelayedAck     Name = "nagle-delayed-ack"
	MTUBlackHole        Name = "mtu-black-hole"
	Pacing              Name = "pacing"
	CPU                 Name = "cpu"
	Sender              Name = "sender" // send-buffer, pacing or application: a capture cannot distinguish them
	Unknown             Name = "unknown"
	Mixed               Name = "mixed"
)

// Subtypes of a verdict.
const (
	Unscaled = "unscaled" // receiver-window: no window scale was agreed on, at most 65,535 bytes
	// receiver-window: a scale of 0 was offered, for a buffer that is not to pass 65,535 bytes
	ScaleZero       = "factor-0"
	AutotuneCeiling = "stuck"            // receiver-window: constant though scaled
	AutotuneGrowing = "autotune-growing" // receiver-window: still growing at the end
	AutotuneOff     = "autotune-off"     // receiver-window: its system does not size it
	Fixed           = "fixed"            // receiver-window: SO_RCVBUF or a clamp
	// receiver-window: the windows are not in the unit of the scale that the handshake agreed on
	ScaleMismatch = "scale-mismatch"
	// receiver-window: a closed window opens only in the answer to a probe
	NoUpdates = "no-window-updates"
	// bottleneck: the path limits the rate of each connection, several carry several times as much
	PerFlow = "per-flow"
	// bottleneck: several connections carry more together, each less than one alone: others share the link
	Shared  = "shared"
	Policer = "policer" // congestion: loss at least RTT, constant rate after a burst
	// congestion: SYNs were lost, and waiting to repeat them took most of the time
	LostSYNs = "lost-syns"
	// congestion: queues' marks (ECN) reduce the congestion window
	Marked = "marked"
	// congestion: retransmitted segments had arrived, because the path reorders
	Reordering = "reordering"
	// congestion: congestion avoidance began without a loss, far below what the path carries
	LowSsthresh = "low-ssthresh"
	// congestion: segments arrive with a wrong checksum, and the receiver drops them
	Damaged = "damaged"
	// congestion: segments were lost after they had passed a tap at the receiver
	ReceiverDrops = "receiver-drops"
	// mtu-black-hole: all segments longer than the MSS are lost, no others
	Oversized = "oversized"
	// slow-start: the congestion window reopened after idle times
	IdleRestart = "idle-restart"
	// nagle-delayed-ack: a sender waits, block by block, for the last acknowledgement, which a timer delays
	AckTimer = "ack-timer"
	// application: a block, and then nothing until the other end responds or requests the next
	RequestResponse = "request-response"
	// application: no more in flight than a window of the program's own allows, though TCP's has room
	ProgramWindow = "program-window"
)

// Names lists the vocabulary in the order in which reports show it.
func Names() []Name {
	return []Name{Application, SendBuffer, ReceiverWindow, ReceiverApplication, Congestion, Bottleneck,
		LocalQueue, AckPath, SlowStart, NagleDelayedAck, MTUBlackHole, Pacing, CPU, Sender, Unknown, Mixed}
}

// Subtypes are those that a limiter may have.
func Subtypes(limiter Name) []string {
	switch limiter {
	case ReceiverWindow:
		return []string{Unscaled, ScaleZero, AutotuneCeiling, AutotuneGrowing, AutotuneOff, Fixed, ScaleMismatch, NoUpdates}
	case Bottleneck:
		return []string{PerFlow, Shared}
	case Congestion:
		return []string{Policer, Reordering, LostSYNs, Marked, LowSsthresh, Damaged, ReceiverDrops}
	case MTUBlackHole:
		return []string{Oversized}
	case SlowStart:
		return []string{IdleRestart}
	case NagleDelayedAck:
		return []string{AckTimer}
	case Application:
		return []string{RequestResponse, ProgramWindow}
	}
	return nil
}

// Confidence in a verdict.
type Confidence string

const (
	High   Confidence = "high"   // direct evidence from a fit vantage
	Medium Confidence = "medium" // inferred, or corrected for the vantage
	Low    Confidence = "low"    // one indirect sign
)

// Shares of a transfer's wall time; they sum to 1, Unknown included.
type Shares map[Name]float64

// Evidence is one observation: its code and its values. Text is the sentence for people in a document; a judge leaves
// it empty.
type Evidence struct {
	Limiter Name   `json:"limiter"`
	Code    Code   `json:"code,omitempty"`
	Text    string `json:"text"`
	Values  Values `json:"values,omitempty"`
}

// Values are an observation's numbers. Keys carry SI units as their ending: _s, _bps,
// _bytes, and _ratio for shares of 0 to 1; counts have none.
type Values map[string]float64

// Verdict is what limited one direction of one transfer.
type Verdict struct {
	Limiter    Name       `json:"limiter"`
	Subtype    string     `json:"subtype,omitempty"`
	Confidence Confidence `json:"confidence"`
	Shares     Shares     `json:"shares"`
	// Candidates are the limiters that remain possible when the verdict is Sender,
	// Mixed or Unknown.
	Candidates []Name     `json:"candidates,omitempty"`
	Evidence   []Evidence `json:"evidence"`
}

// Disturbed says that something was in the way that is no part of the path or of the transfer.
func (v *Verdict) Disturbed() bool {
	return slices.ContainsFunc(v.Evidence, func(e Evidence) bool {
		return e.Code == RunqueueWaited || e.Code == MemoryPressure || e.Code == ConcurrentTests || e.Code == ClockTrouble
	})
}

// Top returns the names in shares from the largest share down.
func (s Shares) Top() []Name {
	names := make([]Name, 0, len(s))
	for n := range s {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b Name) int {
		if s[a] != s[b] {
			return int(math.Copysign(1, s[b]-s[a]))
		}
		return strings.Compare(string(a), string(b))
	})
	return names
}

// MarshalJSON rounds to a hundredth of a percent, which is finer than any clock that
// shares come from.
func (s Shares) MarshalJSON() ([]byte, error) {
	rounded := make(map[Name]float64, len(s))
	for n, v := range s {
		rounded[n] = math.Round(v*1e4) / 1e4
	}
	return json.Marshal(rounded)
}
