package transfer

import "time"

// Sending has the sender's latest counters during a transfer, summed over the streams since the start. Only the
// fields that Have names are valid.
type Sending struct {
	Have          Fields        `json:"have,omitempty"`
	Streams       int           `json:"streams,omitempty"`
	RTT           time.Duration `json:"rtt_ns,omitempty"` // smoothed, the streams' mean
	Retransmitted int64         `json:"retransmitted,omitempty"`
	// As in Sample.
	Busy          time.Duration `json:"busy_ns,omitempty"`
	RwndLimited   time.Duration `json:"rwnd_limited_ns,omitempty"`
	SndbufLimited time.Duration `json:"sndbuf_limited_ns,omitempty"`
}

// Add adds the sample of one stream. The sum has the fields that every stream has.
func (s *Sending) Add(sample *Sample) {
	if s.Streams == 0 {
		s.Have = sample.Have
	}
	s.Have &= sample.Have
	s.RTT = (s.RTT*time.Duration(s.Streams) + sample.RTT) / time.Duration(s.Streams+1)
	s.Streams++
	s.Retransmitted += sample.Retransmitted
	s.Busy += sample.Busy
	s.RwndLimited += sample.RwndLimited
	s.SndbufLimited += sample.SndbufLimited
}
