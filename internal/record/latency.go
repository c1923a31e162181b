package record

// Latency is what the transfer made of others' round trips on the path: small packets on
// a connection of their own, before and during the transfer. Times are medians unless stated otherwise.
type Latency struct {
	Method         string   `json:"method"` // "echo" on the control connection, "ICMP", "ICMP (raw)", "TCP connect"
	IdleS          float64  `json:"idle_s"`
	IdleProbes     int      `json:"idle_probes"`
	LoadedS        *float64 `json:"loaded_s,omitempty"`
	LoadedP95S     *float64 `json:"loaded_p95_s,omitempty"`
	LoadedLargestS *float64 `json:"loaded_largest_s,omitempty"`
	LoadedProbes   int      `json:"loaded_probes"`
	Lost           int      `json:"lost_probes"`
	AddedS         *float64 `json:"added_s,omitempty"`
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

// The closed list, with the added time's bounds.
const (
	NoBloat   Bloat = "none" // < 30 ms
	SomeBloat Bloat = "some" // up to 90 ms
	MuchBloat Bloat = "much"
)
