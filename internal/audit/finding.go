package audit

import "time"

// Grade is the kind of a finding.
type Grade string

const (
	Limits  Grade = "limits"  // limits the stated path
	Harmful Grade = "harmful" // hurts on every path
	Risk    Grade = "risk"    // hurts under conditions that exist now or may come
	Inert   Grade = "inert"   // has no effect on this system
	Unknown Grade = "unknown" // the catalog does not know it, or it could not be read
)

// grades in the order in which findings are shown.
var grades = []Grade{Limits, Harmful, Risk, Inert, Unknown}

// Finding is one fact about a host that may concern its transfers.
type Finding struct {
	Grade     Grade  `json:"grade"`
	Code      Code   `json:"code,omitempty"`
	Parameter string `json:"parameter"`
	Value     string `json:"value,omitempty"`
	// Text is the sentence of Code and Args. Judge leaves it empty; it is filled where a document is made.
	Text string `json:"text"`
	// CapBps is the largest rate that the host allows with it, CostBps the loss on the path; both only for a stated
	// path.
	CapBps  float64 `json:"cap_bps,omitempty"`
	CostBps float64 `json:"cost_bps,omitempty"`
	// Fix is Command, or the sentence that Code has for it.
	Fix    string `json:"fix,omitempty"`
	Source string `json:"source,omitempty"`
	// Confirmed reports that a primary source confirms the finding.
	Confirmed bool `json:"confirmed"`

	// Args are the values of the sentence in its order.
	Args []any `json:"-"`
	// Command sets or computes the right value; "" if no command does.
	Command string `json:"-"`
}

// Bad reports whether the finding limits or harms. Risks, counters and unknown settings are not bad.
func (f Finding) Bad() bool { return f.Grade == Limits || f.Grade == Harmful }

// Path is the path that the host is judged for. The zero value is no path in particular.
type Path struct {
	RateBps     float64
	RTT         time.Duration
	Connections int // bulk connections at one time; 0 is 1
	// Program requests ReceiveDatagrams and SendDatagrams bytes of buffer for its UDP socket.
	Program                         string
	ReceiveDatagrams, SendDatagrams int64
}

func (p Path) stated() bool { return p.RateBps > 0 && p.RTT > 0 }

// Types of Args besides numbers, texts, units.Size, units.Rate, time.Duration, Path, Socket and Finding.
type (
	Bytes       int64                        // a size whose exact number matters
	Connections int                          // a number of connections
	Packets     struct{ Count, Total int64 } // Count of Total packets; Total 0 is unknown
)
