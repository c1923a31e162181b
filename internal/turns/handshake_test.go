package turns

import "testing"

// TestTracker_FirstRequest has a connection's first request a while after the handshake. It waited for a timer only
// where the identification left a packet out and the time fits.
func TestTracker_FirstRequest(t *testing.T) {
	for name, c := range map[string]struct {
		waited int64
		id     uint16 // the client's ACK of the SYN-ACK has 101
		ipv6   bool
		want   Cause
	}{
		"lost before the tap":         {230 * ms, 103, false, TailLossProbe},
		"a late client":               {230 * ms, 102, false, Client},
		"a counter for the host":      {230 * ms, 140, false, Unknown},
		"IPv6":                        {230 * ms, 0, true, Unknown},
		"IPv6, not the timer's time":  {450 * ms, 0, true, Client},
		"a gap, not the timer's time": {90 * ms, 103, false, Client},
	} {
		tracker := &Tracker{}
		version := IPv4
		if c.ipv6 {
			version = 0
		}
		at := 30*ms + c.waited
		for _, p := range []Packet{
			{At: 0, FromClient: true, Flags: SYN | version, IPID: 100, Window: 1 << 16},
			{At: 15 * ms, Flags: SYN | ACK | version, Ack: 1, Window: 1 << 16},
			{At: 30 * ms, FromClient: true, Flags: ACK | version, IPID: 101, Seq: 1, Ack: 1, Window: 1 << 16},
			{At: at, FromClient: true, Flags: ACK | PSH | version, IPID: c.id, Seq: 1, Ack: 1, Payload: 92,
				Window: 1 << 16},
			{At: at + 15*ms, Flags: ACK | PSH | version, IPID: 500, Seq: 1, Ack: 93, Payload: 600, Window: 1 << 16},
		} {
			tracker.Add(&p)
		}
		tracker.Finish()
		p := ProfileOf(&tracker.Summary)
		if cause, _ := p.Longest[0].Time.Worst(); p.Count != 1 || cause != c.want {
			t.Errorf("%s: %v, want %v: %+v", name, cause, c.want, p.Longest)
		}
	}
}
