package record

// DifferenceLevels are the results of one direction of a path before and since a time.
type DifferenceLevels struct {
	Direction string           `json:"direction"`
	Before    *DifferenceLevel `json:"before,omitempty"`
	Since     *DifferenceLevel `json:"since,omitempty"`
}

// DifferenceLevel sums up results: the median of their goodput with its 95 % interval, and
// how often each limiter was named.
type DifferenceLevel struct {
	Runs      int            `json:"runs"`
	MedianBps float64        `json:"median_goodput_bps"`
	LowBps    *float64       `json:"median_goodput_low_bps,omitempty"`
	HighBps   *float64       `json:"median_goodput_high_bps,omitempty"`
	Limiters  map[string]int `json:"limiters"`
}
