package record

// Days is the object that `history days --json` prints, the oldest day first.
type Days struct {
	Header
	Days []HistoryDay `json:"days"`
}

// HistoryDay summarizes one direction of a path on one UTC day. It includes results that were removed from the history
// since.
type HistoryDay struct {
	Day       string         `json:"day"` // as in 2026-11-22
	PathKey   string         `json:"path_key"`
	Far       string         `json:"peer"`
	Direction string         `json:"direction"`
	Runs      int            `json:"runs"`
	MeanBps   float64        `json:"mean_goodput_bps"` // geometric
	LeastBps  float64        `json:"least_goodput_bps"`
	MostBps   float64        `json:"most_goodput_bps"`
	RTTMinS   *float64       `json:"rtt_min_s,omitempty"`
	Limiters  map[string]int `json:"limiters"` // how often each was named
}
