package record

import "time"

// Latency is what the transfer made of others' round trips on the path: small packets on
// a connection of their own, before and during the transfer. Times are medians unless stated otherwise.
type Latency struct {
	Method         string   `json:"method"` // "echo" on the control connection, "ICMP", "ICMP (raw)", "TCP connect"
	IdleS          float64  `json:"idle_s"`
	IdleProbes     int      `json:"idle_probes"`
	LoadedS        *float64 `json:"loaded_s,omitempty"`
	LoadedP95S     *float64 `json:"loaded_p95_s,omitempty"`
	LoadedLargestS *float64 `json:"loaded_largest_s,omitempty"`
	// LoadedTrimmedMeanS is the mean without the slowest 5 %, as draft-ietf-ippm-responsiveness trims it.
	LoadedTrimmedMeanS *float64 `json:"loaded_trimmed_mean_s,omitempty"`
	LoadedProbes       int      `json:"loaded_probes"`
	Lost               int      `json:"lost_probes"`
	AddedS             *float64 `json:"added_s,omitempty"`
	// QueueBytes is the queue that adds AddedS at the goodput.
	QueueBytes *int64 `json:"queue_bytes,omitempty"`
	Bloat      Bloat  `json:"bufferbloat,omitempty"`
	// NoCore says that the prober or the responder waited for a core: the times are no evidence of queues then.
	NoCore bool `json:"starved,omitempty"`
	// Separate says that the loaded connection waits in a queue that the small packets do
	// not: something keeps flows apart.
	Separate bool `json:"separate_queues,omitempty"`
}

// Bloat is how much a load adds to small packets' round trips, by the two thresholds of
// RFC 9097 section 8.1.
type Bloat string

// Added times from which a queue disturbs calls and games, and others' pages (RFC 9097 section
// 8.1).
const (
	SomeBloatFrom  = 30 * time.Millisecond
	MuchBloatAbove = 90 * time.Millisecond
)

// The closed list, with the added time's bounds.
const (
	NoBloat   Bloat = "none" // < 30 ms
	SomeBloat Bloat = "some" // up to 90 ms
	MuchBloat Bloat = "much"
)

// Grades of the latency under load, by the greatest added time in seconds. 30 and 90 ms are the thresholds of RFC 9097
// section 8.1, 150 and 400 ms the limits of one-way delay of ITU-T G.114.
var grades = []struct {
	name string
	maxS float64
}{{"A", 0.03}, {"B", 0.09}, {"C", 0.15}, {"D", 0.4}}

// Grade returns the grade of the latency under load, from A to D and F; "" if it is not known.
func (l *Latency) Grade() string {
	if l == nil || l.AddedS == nil || l.NoCore {
		return ""
	}
	for _, g := range grades {
		if *l.AddedS <= g.maxS {
			return g.name
		}
	}
	return "F"
}

// RPM returns round trips a minute under load, by the trimmed mean; 0 if it is not known.
func (l *Latency) RPM() int {
	if l == nil || l.LoadedTrimmedMeanS == nil || !(*l.LoadedTrimmedMeanS > 0) || l.NoCore {
		return 0
	}
	return int(min(60 / *l.LoadedTrimmedMeanS, 1e6) + 0.5)
}
