package record

// Late is the timing error of the lab of a measurement: how much later than an exact link it forwarded packets, and its
// stalls. The figures outside Up and Down are the larger of both.
type Late struct {
	LinkLate
	Up   LinkLate `json:"up"`
	Down LinkLate `json:"down"`
	RTTS float64  `json:"rtt_s"` // asked for
	// FloorS is the least round trip that the lab could have had; absent: not known.
	FloorS float64 `json:"floor_s,omitempty"`
	// Believable is false when either direction stalled for more than 0.5 % of the time, or forwarded one packet in 100
	// more than 0.25 ms and 5 % of the RTT late.
	Believable bool `json:"believable"`
}

// LinkLate is one direction's.
type LinkLate struct {
	P50S     float64 `json:"p50_s"`
	P99S     float64 `json:"p99_s"`
	MaxS     float64 `json:"max_s"`
	Stalls   int64   `json:"stalls"` // of 2 ms or more
	StalledS float64 `json:"stalled_s"`
	WatchedS float64 `json:"watched_s"` // for how long there was traffic
}
