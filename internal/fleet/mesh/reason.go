package mesh

// State is the state of a run. Each due run ends in one of the last five.
type State string

// The closed list of states.
const (
	Due     State = "due"     // waits for its hosts and links
	Granted State = "granted" // ordered
	Done    State = "done"    // its result is stored
	Failed  State = "failed"  // started and gave no result
	Refused State = "refused" // by an agent
	Skipped State = "skipped" // not started before its latest time
	Lost    State = "lost"    // ordered, and nothing was received of it; a later result makes it Done
)

// States are all states.
var States = []State{Due, Granted, Done, Failed, Refused, Skipped, Lost}

// Final reports whether a run in this state has ended.
func (s State) Final() bool { return s != Due && s != Granted }

// Reason says why a run ended without a result.
type Reason string

// The closed list of reasons, by state.
const (
	// Failed
	Unreachable Reason = "unreachable" // neither agent could connect to the other
	TimedOut    Reason = "timed-out"
	FarError    Reason = "far-error"
	Interrupted Reason = "interrupted" // an agent ended or started again

	// Refused
	Busy         Reason = "busy" // the agent's host is in another test
	Peer         Reason = "peer" // the agent's file does not allow the other agent
	Rate         Reason = "rate" // the order asks for more than the agent's file allows
	Stale        Reason = "stale"
	DiskFull     Reason = "disk-full"
	LimitsBroken Reason = "limits-broken" // the agent's own file has a fault
	TimeBudget   Reason = "time-budget"
	Connections  Reason = "connections" // the agent makes no more connections for now, or for today

	// Refused or Skipped
	QuietHours  Reason = "quiet-hours"
	BytesBudget Reason = "bytes-budget"

	// Skipped
	HostTaken    Reason = "host-taken" // by another run, until the latest time
	LinkTaken    Reason = "link-taken"
	AgentAway    Reason = "agent-away"
	HubAway      Reason = "hub-away"
	MeshChanged  Reason = "mesh-changed"
	AgentRemoved Reason = "agent-removed"

	// Lost
	NoResult Reason = "no-result"
)

// Reasons returns the reasons that a final state may have. Done has none.
func Reasons(s State) []Reason {
	switch s {
	case Failed:
		return []Reason{Unreachable, TimedOut, FarError, Interrupted}
	case Refused:
		return []Reason{Busy, QuietHours, BytesBudget, TimeBudget, Peer, Rate, Stale, DiskFull, LimitsBroken,
			Connections}
	case Skipped:
		return []Reason{HostTaken, LinkTaken, AgentAway, QuietHours, BytesBudget, HubAway, MeshChanged, AgentRemoved}
	case Lost:
		return []Reason{NoResult}
	}
	return nil
}
