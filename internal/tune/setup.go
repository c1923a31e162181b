package tune

import (
	"fmt"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Setup is a way to send, by what it changes of the systems' defaults, all of it by socket
// options. Its zero value changes nothing: what a program gets today.
type Setup struct {
	Window     int     // bytes that the effective window of a connection is held to; 0: automatic
	Congestion string  // the sender's congestion control; "": as it is
	Streams    int     // connections at once; 0: one
	PacingBps  float64 // the sender's bound, each connection's own; 0: none
	MSS        int     // the sender's; 0: as it is
}

// plus adds what another setup changes.
func (s Setup) plus(o Setup) Setup {
	if o.Window > 0 {
		s.Window = o.Window
	}
	if o.Congestion != "" {
		s.Congestion = o.Congestion
	}
	if o.Streams > 0 {
		s.Streams = o.Streams
	}
	if o.PacingBps > 0 {
		s.PacingBps = o.PacingBps
	}
	if o.MSS > 0 {
		s.MSS = o.MSS
	}
	return s
}

// besides names what is changed besides the window; "" if nothing is.
func (s Setup) besides() string {
	var parts []string
	if s.Congestion != "" {
		parts = append(parts, "congestion control "+s.Congestion)
	}
	if s.MSS > 0 {
		parts = append(parts, fmt.Sprintf("segments of %s", units.Size(s.MSS).Exact()))
	}
	if s.PacingBps > 0 {
		parts = append(parts, "pacing at "+units.Rate(s.PacingBps).String())
	}
	if s.Streams > 1 {
		parts = append(parts, fmt.Sprintf("%d streams", s.Streams))
	}
	return strings.Join(parts, ", ")
}

func (s Setup) String() string {
	besides := s.besides()
	switch {
	case s == Setup{}:
		return "automatic"
	case s.Window == 0:
		return besides
	case besides == "":
		return "a window of " + units.Size(s.Window).Exact()
	}
	return "a window of " + units.Size(s.Window).Exact() + ", " + besides
}

// with is a transfer with a setup.
func (l *loop) with(s Setup, length time.Duration, reason string) Trial {
	t := Trial{Reason: reason, Spec: transfer.Spec{Time: length}}
	if s.Window > 0 {
		t = l.window(s.Window, length, reason)
	}
	t.Remedy = s.besides()
	t.Setup = s
	t.Automatic = s == Setup{}
	sender, _ := l.ends(&t.Spec)
	sender.Congestion = s.Congestion
	sender.PacingBps = s.PacingBps
	sender.MSS = s.MSS
	t.Spec.Streams = s.Streams
	return t
}

// can says whether the peer can carry a setup out.
func (l *loop) can(s Setup) bool {
	return l.cfg.Peer.Check(transfer.TCP(withDirection(l.with(s, time.Second, "").Spec, l.out.Direction))) == nil
}

// length is how long a transfer with a setup has to last.
func (l *loop) length(s Setup) time.Duration { return l.config().Length(s.Window) }
