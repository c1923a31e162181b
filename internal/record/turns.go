package record

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
}

// Leads reports whether the connection is one of requests, so that they say more than the rate of its data.
func (t *Turns) Leads() bool {
	const minTurns = 5
	return t != nil && !t.Interleaved && t.Bulk == 0 && t.Count >= minTurns
}

// SlowestTurn is one of the slowest turns.
type SlowestTurn struct {
	StartS    float64 `json:"start_s"` // since the connection's first packet
	DurationS float64 `json:"duration_s"`
	Cause     string  `json:"cause"` // of most of its time, propagation aside
	CauseS    float64 `json:"cause_s"`
	// FirstPacket and LastPacket are the numbers of its packets in the file; absent for captures of several files.
	FirstPacket int64 `json:"first_packet,omitempty"`
	LastPacket  int64 `json:"last_packet,omitempty"`
	// LostBeforeTap reports that some of its packets never reached the place of the capture; the time that they cost is
	// an estimate.
	LostBeforeTap bool `json:"lost_before_tap,omitempty"`
}

// Stage is time that turns passed in one stage with one cause: the mean of the turns around the median, and of the
// slowest hundredth.
type Stage struct {
	Stage    string  `json:"stage"` // connect, request, thinking, response
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
