package tune

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/units"
)

// sockets is what the two ends' socket options can do.
type sockets struct {
	// Automatic sizing reaches these buffers by itself: up to here no request is needed.
	automaticSend, automaticReceive int
	noClamp                         bool
	// senderOnly reports that the receiver's window cannot be set: the sender's buffer has to hold it.
	senderOnly bool
}

// buffers are the requests that give a window.
func (s *sockets) buffers(window int) Chosen {
	c := Chosen{Setup: Setup{Window: window}, Clamp: window}
	if window > s.automaticSend {
		c.SendBuffer = window + window/4
	}
	if window > s.automaticReceive {
		c.ReceiveBuffer = window
	}
	switch {
	case s.senderOnly: // as to a sink that sets its own sockets
		c.Clamp = 0
		c.ReceiveBuffer = 0
		c.SendBuffer = window
	case s.noClamp:
		c.Clamp = 0
		c.ReceiveBuffer = window
	}
	return c
}

// Setup is a way to send, by what it changes of the systems' defaults, all of it by socket
// options. Its zero value changes nothing: it is the baseline.
type Setup struct {
	Window     int     // limit of a connection's effective window, in bytes; 0: automatic
	Congestion string  // the sender's congestion control; "": as it is
	Streams    int     // connections at once; 0: one
	PacingBps  float64 // the sender's bound of payload (tcp_output.c), each connection's own; 0: none
	MSS        int     // the sender's; 0: as it is
}

// plus adds what another setup changes.
func (s Setup) plus(o Setup) Setup {
	return Setup{Window: cmp.Or(o.Window, s.Window), Congestion: cmp.Or(o.Congestion, s.Congestion),
		Streams: cmp.Or(o.Streams, s.Streams), PacingBps: cmp.Or(o.PacingBps, s.PacingBps), MSS: cmp.Or(o.MSS, s.MSS)}
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
