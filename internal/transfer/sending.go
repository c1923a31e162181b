package transfer

import "time"

// Sending is what the sending end's kernel told last while a transfer ran: counters since
// its start, summed over the streams. Which fields mean anything is said by Have.
type Sending struct {
	Have          Fields        `json:"have,omitempty"`
	Streams       int           `json:"streams,omitempty"`
	RTT           time.Duration `json:"rtt_ns,omitempty"` // smoothed, the streams' mean
	Retransmitted int64         `json:"retransmitted,omitempty"`
	// As in Sample.
	Busy           time.Duration `json:"busy_ns,omitempty"`
	ReceiveLimited time.Duration `json:"rwnd_limited_ns,omitempty"`
	SendLimited    time.Duration `json:"sndbuf_limited_ns,omitempty"`
}

// Add counts one stream in. The sum has what every stream has.
func (s *Sending) Add(sample *Sample) {
	if s.Streams == 0 {
		s.Have = sample.Have
	}
	s.Have &= sample.Have
	s.RTT = (s.RTT*time.Duration(s.Streams) + sample.RTT) / time.Duration(s.Streams+1)
	s.Streams++
	s.Retransmitted += sample.Retransmitted
	s.Busy += sample.Busy
	s.ReceiveLimited += sample.ReceiveLimited
	s.SendLimited += sample.SendLimited
}
