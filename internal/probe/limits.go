package probe

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// DefaultLimits are a server's default limits for one client.
func DefaultLimits() Limits {
	return Limits{Time: time.Hour, Bytes: 1 << 42, Streams: 128, Buffer: 1 << 30, Options: systemOptions}
}

// Check returns *transfer.Unsupported if the Spec is invalid or exceeds the limits.
func (h Hello) Check(s transfer.Spec) error {
	no := func(field, why string, args ...any) error {
		return &transfer.Unsupported{Field: field, Reason: fmt.Sprintf(why, args...)}
	}
	if err := s.Validate(); err != nil {
		return err
	}
	l := h.Limits
	switch {
	case s.Requests.On() && !h.Requests:
		return no(transfer.FieldRequests, "the far end's fullpipe (%.60s) is too old for loads of requests", h.Software)
	case s.Requests.On() && l.Bps > 0 && rate(s) > l.Bps:
		return no("Requests.PerSecond", "the far end allows at most %v per test and requires a rate of requests",
			units.Rate(l.Bps))
	case s.Time > l.Time:
		return no("Time", "%v is more than the far end's %v", s.Time, l.Time)
	case s.Bytes > l.Bytes:
		return no("Bytes", "%v is more than the far end's %v", units.Size(s.Bytes), units.Size(l.Bytes))
	case s.Streams > l.Streams:
		return no("Streams", "%d is more than the far end's %d", s.Streams, l.Streams)
	case l.Bps > 0 && rate(s) > l.Bps:
		return no("Program.WriteBps", "the far end allows at most %v per test and requires a rate (--write-rate)",
			units.Rate(l.Bps))
	}
	for _, size := range []struct {
		name  string
		bytes int
	}{{"Near.SendBuffer", s.Near.SendBuffer}, {"Near.ReceiveBuffer", s.Near.ReceiveBuffer}, {"Near.Clamp", s.Near.Clamp},
		{"Far.SendBuffer", s.Far.SendBuffer}, {"Far.ReceiveBuffer", s.Far.ReceiveBuffer}, {"Far.Clamp", s.Far.Clamp}} {
		if size.bytes > l.Buffer {
			return no(size.name, "%d is more than the far end's %v", size.bytes, units.Size(l.Buffer))
		}
	}
	far := s.Far
	if !l.Options && (far.Clamp > 0 || far.Congestion != "" || far.MSS > 0 || far.PacingBps > 0 || far.TOS > 0) {
		return no("Far", "the far end's system (%s) sets buffers only", h.Kernel)
	}
	if far.Congestion != "" && !slices.Contains(h.Congestion, far.Congestion) {
		return no("Far.Congestion", "the far end offers %v, not %s", h.Congestion, far.Congestion)
	}
	return nil
}

// rate returns the maximum send rate of all streams of a Spec, bit/s.
func rate(s transfer.Spec) float64 {
	one := math.Inf(1)
	if r := s.Requests; r.PerSecond > 0 {
		return r.PerSecond * float64(max(r.RequestBytes, r.ResponseBytes)) * 8
	} else if r.On() {
		return one
	}
	if s.Program.WriteBps > 0 {
		one = s.Program.WriteBps
	}
	pacing := s.Near.PacingBps
	if s.Direction == transfer.Down {
		pacing = s.Far.PacingBps
	}
	if pacing > 0 {
		one = min(one, pacing)
	}
	return one * float64(max(s.Streams, 1))
}

// Excess returns an error if a transfer or direction has moved more than allowed since its first byte. The rate is
// an average with 1.1 s of tolerance for queued data.
func (l Limits) Excess(bytes int64, elapsed time.Duration) error {
	switch {
	case l.Bytes > 0 && bytes > l.Bytes:
		return fmt.Errorf("more than the %v that one test may move here", units.Size(l.Bytes))
	case l.Bps > 0 && float64(bytes)*8 > 1.1*l.Bps*(elapsed+time.Second).Seconds():
		return fmt.Errorf("faster than the %v that one test may take here", units.Rate(l.Bps))
	}
	return nil
}
