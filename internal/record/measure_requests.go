package record

// MeasureRequests is the object that `measure --rr --json` and `measure --crr --json` print.
type MeasureRequests struct {
	Header
	Peer string `json:"peer"`
	Near *Host  `json:"near,omitempty"`
	Far  *Host  `json:"far,omitempty"`
	// Method is rr (the connections stay open) or crr (each request opens one).
	Method        string `json:"method"`
	RequestBytes  int64  `json:"request_bytes"`
	ResponseBytes int64  `json:"response_bytes"`
	Concurrency   int64  `json:"concurrency"` // requests at a time
	// OfferedPerS is the rate that was asked for; absent: each request waits for the response before.
	OfferedPerS     *float64 `json:"offered_per_s,omitempty"`
	DurationS       float64  `json:"duration_s"`
	RequestsPerS    float64  `json:"requests_per_s"`
	ConnectionsPerS *float64 `json:"connections_per_s,omitempty"` // of crr
	Connections     int64    `json:"connections"`
	Failed          int64    `json:"failed,omitempty"` // connections that broke or could not be opened
	// Statuses counts the responses of a web server by status code. The times have all of them.
	Statuses []StatusCount `json:"statuses,omitempty"`
	// NotStarted requests were due and had no free connection until the end; the times leave them out.
	NotStarted int64    `json:"not_started,omitempty"`
	RTTMinS    *float64 `json:"rtt_min_s,omitempty"`
	Requests
	Criteria    []RequestsCriterion `json:"criteria,omitempty"`
	Warnings    []string            `json:"warnings,omitempty"`
	Interrupted bool                `json:"interrupted,omitempty"`
	Error       *Failure            `json:"error,omitempty"`
}

// StatusCount counts the responses with one HTTP status code.
type StatusCount struct {
	Status int   `json:"status"`
	Count  int64 `json:"count"`
}

// Direction is the name of the figure of requests in lists.
const requestsFigure = "requests"

func (d *MeasureRequests) summarize(s *Summary) {
	s.end(d.Peer, d.Error)
	f := Figure{Direction: requestsFigure, RTTMinS: d.RTTMinS, RequestsPerS: &d.RequestsPerS}
	if t := d.Turns; t != nil {
		f.P50S = &t.P50S
		f.P99S = t.P99S
	}
	s.add(f)
	s.interrupt(d.Interrupted)
}
