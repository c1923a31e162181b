package record

import "iter"

// Requests are the turns of one connection, or of all connections to one server. They are absent
// where there are bulk transfers only.
type Requests struct {
	Turns  *Turns  `json:"turns,omitempty"`
	Stages []Stage `json:"stages,omitempty"`
	Stalls []Stall `json:"stalls,omitempty"`
}

// Leads reports whether the requests say more than the rate of their data.
func (r *Requests) Leads() bool {
	const minTurns = 5
	t := r.Turns
	return t != nil && !t.Interleaved && t.Bulk == 0 && t.Count >= minTurns
}

// CapturedServer is the requests of several connections to one server.
type CapturedServer struct {
	Server      string `json:"server"`
	Connections int64  `json:"connections"` // with requests
	Clients     int64  `json:"clients"`     // addresses
	Requests
}

// ServerOf returns the requests to the server of a connection where they lead; nil: they do not, or
// the server has only this connection.
func (d *Diagnose) ServerOf(c *CapturedConnection) *CapturedServer {
	for i := range d.Servers {
		if s := &d.Servers[i]; s.Server == c.Server && s.Leads() {
			return s
		}
	}
	return nil
}

// AllRequests returns the requests of each server; those of a single connection are the
// connection's.
func (d *Diagnose) AllRequests() iter.Seq2[string, *Requests] {
	return func(yield func(string, *Requests) bool) {
		listed := map[string]bool{}
		for i := range d.Servers {
			s := &d.Servers[i]
			listed[s.Server] = true
			if !yield(s.Server, &s.Requests) {
				return
			}
		}
		for i := range d.Connections {
			c := &d.Connections[i]
			if c.Turns != nil && !listed[c.Server] && !yield(c.Server, &c.Requests) {
				return
			}
		}
	}
}

// RequestsCriterion is a requirement of the requests of a capture, and whether it passed.
type RequestsCriterion struct {
	// p50, p90, p99 or max above a time, or a kind of stall
	Criterion string `json:"criterion"`
	Server    string `json:"server,omitempty"` // the worst of a capture
	// MeasuredS is its percentile, or the time of its stalls; absent: not known, which does not
	// pass.
	MeasuredS *float64 `json:"measured_s,omitempty"`
	// Unknown says why MeasuredS is absent: too-few-requests, no-response (the percentile includes
	// one of them), unknown-causes (of waits).
	Unknown string `json:"unknown,omitempty"`
	Passed  bool   `json:"passed"`
}

// Reasons of RequestsCriterion.Unknown.
const (
	TooFewRequests = "too-few-requests"
	NoResponse     = "no-response"
	UnknownCauses  = "unknown-causes"
)

// Turns are the requests of a connection. A turn is one request and its response, as the client saw it.
type Turns struct {
	Count int64    `json:"count"`
	P50S  float64  `json:"p50_s"`
	P90S  *float64 `json:"p90_s,omitempty"` // from 20 turns on
	P99S  *float64 `json:"p99_s,omitempty"` // from 100 turns on
	MaxS  float64  `json:"max_s"`
	Bulk  int64    `json:"bulk,omitempty"` // of them with more than 400 KiB in a request or response
	// Unanswered are requests without a response; Pushes segments of the server before the client's first data.
	Unanswered int64 `json:"unanswered,omitempty"`
	Pushes     int64 `json:"pushes,omitempty"`
	// Overlapping are turns that began before the response of the one before had arrived. Interleaved reports that
	// there are too many of them to separate turns.
	Overlapping int64 `json:"overlapping,omitempty"`
	Interleaved bool  `json:"interleaved,omitempty"`
	// ClientAssumed reports that no SYN was captured: the client is the end that sent data first.
	ClientAssumed bool          `json:"client_assumed,omitempty"`
	Needless      int64         `json:"needless_retransmissions,omitempty"`
	Slowest       []SlowestTurn `json:"slowest"`
	// Distribution counts turns by duration, from the fastest on.
	Distribution []TurnsBin `json:"distribution,omitempty"`
}

// TurnsBin counts the turns that took less than BelowS, and not less than the tenth of a decade
// before.
type TurnsBin struct {
	BelowS float64 `json:"below_s"`
	Count  int64   `json:"count"`
}

// SlowestTurn is one of the slowest turns.
type SlowestTurn struct {
	Client string `json:"client"` // address and port
	// since the first packet of the connection, or of all of the server's
	StartS    float64 `json:"start_s"`
	DurationS float64 `json:"duration_s"`
	Cause     string  `json:"cause"` // of most of its time, propagation aside
	CauseS    float64 `json:"cause_s"`
	// FirstPacket and LastPacket are the numbers of its packets in the file; absent for captures of several files.
	FirstPacket int64 `json:"first_packet,omitempty"`
	LastPacket  int64 `json:"last_packet,omitempty"`
	// LostBeforeTap reports that some of its packets never reached the place of the capture; the time that they cost is
	// an estimate.
	LostBeforeTap bool `json:"lost_before_tap,omitempty"`
	// Parts add up to the duration, stage by stage.
	Parts []TurnPart `json:"parts,omitempty"`
}

// TurnPart is the time of one turn in one stage with one cause.
type TurnPart struct {
	Stage string  `json:"stage"`
	Cause string  `json:"cause"`
	TimeS float64 `json:"time_s"`
}

// Stage is time that turns passed in one stage with one cause: the mean of the turns around the median, and of the
// slowest hundredth.
type Stage struct {
	Stage    string  `json:"stage"` // connect, tls, request, thinking, response
	Cause    string  `json:"cause"`
	MedianS  float64 `json:"median_s"`
	SlowestS float64 `json:"slowest_s"`
}

// Stall sums up silences inside turns in which the transport owed the next packet.
type Stall struct {
	Cause string  `json:"cause"`
	From  string  `json:"from"` // client or server: which end owed the packet
	Count int64   `json:"count"`
	TimeS float64 `json:"time_s"`
}
