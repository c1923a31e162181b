package transfer

import (
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/turns"
)

// Requests makes a transfer a load of requests: the near end sends them and the far end responds. Each stream has at
// most one outstanding request. The zero value is none.
type Requests struct {
	RequestBytes  int `json:"request_bytes,omitempty"`
	ResponseBytes int `json:"response_bytes,omitempty"`
	// NewConnections opens a new connection for each request.
	NewConnections bool `json:"new_connections,omitempty"`
	// PerSecond is the rate of all streams together. The duration of a request counts from when it was due, so a slow
	// response delays no later request unseen. 0: a stream sends its next request after the response.
	PerSecond float64 `json:"per_second,omitempty"`
}

// On reports whether a transfer is a load of requests.
func (r Requests) On() bool { return r != Requests{} }

// Bounds of Requests.
const (
	maxMessage    = 16 << 20 // bytes of a request or a response
	minPerSecond  = 0.01
	maxPerSecond  = 1e7
	MaxExchanges  = 4096 // of Responses
	FieldRequests = "Requests"
)

// validate returns *Unsupported for requests that no far end can support.
func (s *Spec) validateRequests() error {
	r := s.Requests
	no := func(field, why string, args ...any) error {
		return &Unsupported{Field: FieldRequests + field, Reason: fmt.Sprintf(why, args...)}
	}
	switch {
	case !r.On():
		return nil
	case r.RequestBytes < 1 || r.RequestBytes > maxMessage:
		return no(".RequestBytes", "%d is not between 1 and %d bytes", r.RequestBytes, maxMessage)
	case r.ResponseBytes < 1 || r.ResponseBytes > maxMessage:
		return no(".ResponseBytes", "%d is not between 1 and %d bytes", r.ResponseBytes, maxMessage)
	case r.PerSecond != 0 && !(r.PerSecond >= minPerSecond && r.PerSecond <= maxPerSecond):
		return no(".PerSecond", "%v is not between %v and %v requests a second", r.PerSecond, minPerSecond, maxPerSecond)
	case s.Direction != Up || s.Time <= 0 || s.Bytes != 0 || s.Program != Program{}:
		return no("", "requests are sent up, for a time, by a program of their own")
	}
	return nil
}

// Responses is the far end's view of a load of requests.
type Responses struct {
	Requests    int64 `json:"requests"`
	Connections int64 `json:"connections"`
	// Exchanges are those in which the far end retransmitted or its program took long; at most MaxExchanges. LeftOut
	// counts the others.
	Exchanges []Exchange `json:"exchanges,omitempty"`
	LeftOut   int64      `json:"left_out,omitempty"`
}

// Exchange is the far end's part of one request and its response.
type Exchange struct {
	Stream uint16 `json:"stream"` // its number at the near end
	Number uint32 `json:"number"` // of the request on its stream; the first is 1
	// Retransmitted segments and timeouts (RFC 6298) of the far end. Timeouts is -1 where its kernel does not count them:
	// Linux before 6.7, other systems.
	Retransmitted int64         `json:"retransmitted,omitempty"`
	Timeouts      int64         `json:"rtos,omitempty"`
	SYNACKs       int64         `json:"syn_acks,omitempty"`    // retransmitted SYN-ACKs
	Thinking      time.Duration `json:"thinking_ns,omitempty"` // between the request's last byte and the response's write
}

// validate checks what a far end reported of a load of requests.
func (a *Responses) validate(b *validator) {
	b.prefix = "responses."
	b.bytes("requests", a.Requests)
	b.bytes("connections", a.Connections)
	b.bytes("left_out", a.LeftOut)
	b.within("exchanges", float64(len(a.Exchanges)), 0, MaxExchanges)
	for i := range a.Exchanges {
		x := &a.Exchanges[i]
		b.bytes("exchanges[].retransmitted", x.Retransmitted)
		b.bytes("exchanges[].syn_acks", x.SYNACKs)
		b.within("exchanges[].rtos", float64(x.Timeouts), -1, b.maxBytes)
		b.time("exchanges[].thinking_ns", x.Thinking)
	}
}

// Load is the near end's result of a load of requests.
type Load struct {
	Profile     turns.Profile
	Elapsed     time.Duration
	Connections int64 // opened
	// ResponseBytes is the mean of the responses.
	ResponseBytes int64
	Failed        int64 // of them those that could not be opened, or ended before the response
	// NotStarted counts the requests that were due and had no free stream before the end.
	NotStarted int64
	// RoundTrip is the least round trip of the kernel; 0: not known.
	RoundTrip time.Duration
	// SlowLeftOut counts slow requests that no stall could be looked for in, because there were too many.
	SlowLeftOut int64
	// Statuses counts the responses of a web server by status code.
	Statuses map[int]int64
	// FarKnown reports whether the far end reported its retransmissions.
	FarKnown bool
}

// StallsKnown reports whether each stall for a retransmission has its kind.
func (l *Load) StallsKnown() bool {
	return l.FarKnown && l.SlowLeftOut == 0 && l.Profile.Unclassified == 0
}

// Missing counts the requests that were due and have no successful response.
func (l *Load) Missing() (n int64) {
	n = l.Profile.Unanswered + l.Failed + l.NotStarted
	for status, count := range l.Statuses {
		if status/100 != 2 {
			n += count
		}
	}
	return n
}
