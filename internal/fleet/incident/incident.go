// Package incident finds faults in the state of a fleet's hosts and paths, with their common cause, and decides which
// tests and reports follow. It has no clock and no I/O: state in, decisions out.
//
// Flow of Judge:
//
//  1. Hosts that the hub has not heard of are away (away.go).
//  2. Directions whose repeated tests show a symptom are grouped with others by host, site or link (group.go).
//  3. Paths that share an end or a link with a new one are due at once (ask.go).
//  4. Findings become incidents: opened, changed, resolved (judge.go).
package incident

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/recheck"
)

// Symptom is what is wrong with a direction or a host.
type Symptom string

// The closed list, the gravest first.
const (
	Away        Symptom = "away"        // the hub has not heard of the host
	Unreachable Symptom = "unreachable" // neither host could connect to the other, repeatedly
	Slow        Symptom = "goodput"     // below its usual range
	Delayed     Symptom = "rtt"         // above its usual range
	Limited     Symptom = "limiter"     // a host's own setting limits most of its paths
)

// Symptoms are all symptoms, the gravest first.
var Symptoms = []Symptom{Away, Unreachable, Slow, Delayed, Limited}

const (
	// AwayAfter is how long the hub has not heard of a host that is away: an upgrade takes less.
	AwayAfter = 5 * time.Minute
	// Settle is how long an incident waits for the tests that name its cause.
	Settle = 30 * time.Minute
	// AskEvery is the least time between two tests of a pair for an incident.
	AskEvery = time.Hour
	// Reopens is how long a resolved incident is the same one if it is back.
	Reopens = 24 * time.Hour
	// Accepted is how long a level lasts that becomes the usual one of a path in an open incident.
	Accepted = 14 * 24 * time.Hour
)

// Sign is what is known of one symptom of a direction.
type Sign struct {
	Off   bool      // the newest result has it
	Since time.Time // since when repeated tests show it; zero: they do not
}

// Direction is the state of one direction of a pair.
type Direction struct {
	Task, Pair       string
	From, To         string // hosts' IDs: From sends
	FromSite, ToSite string
	Links            []string
	Measured         time.Time // of the newest result; zero: never
	Ended            time.Time // when the newest run ended, with a result or without
	Asked            time.Time // when an incident last made the pair due
	Unreachable      Sign
	Limiter          string
	WindowBytes      int64 // of a limiter that is a window; 0: not known
	GoodputBps       float64
	Goodput          recheck.Level // before
	RTTMinS          float64
	RTT              recheck.Level
}

// path names a direction.
func (d *Direction) path() Path { return Path{Task: d.Task, From: d.From, To: d.To} }

// sign returns the state of a symptom.
func (d *Direction) sign(s Symptom) Sign {
	switch s {
	case Unreachable:
		return d.Unreachable
	case Slow:
		return signOf(d.GoodputBps, d.Goodput, -1)
	case Delayed:
		return signOf(max(d.RTTMinS, recheck.LeastRTT.Seconds()), d.RTT, 1)
	}
	return Sign{}
}

// Host is a host of the fleet.
type Host struct {
	ID, Name, Site string
	Seen           time.Time
}

// Silence suppresses reports of a host, a site, a link or a path until a time.
type Silence struct {
	ID    string    `json:"id"`
	Kind  string    `json:"kind"` // host, site, link or path
	Name  string    `json:"name"` // of a path: two hosts, "A B"
	Until time.Time `json:"until"`
	By    string    `json:"by"`
}

// State is all that is known at a time.
type State struct {
	Now        time.Time
	Since      time.Time // since when hosts can reach the hub
	Hosts      []Host
	Directions []Direction
	Silences   []Silence
	// Incidents are the open ones, and those that were resolved within Reopens.
	Incidents []Incident
}

// Change is an event in the life of an incident.
type Change string

// The closed list.
const (
	Opened   Change = "opened"
	Changed  Change = "changed" // another cause or symptom is known
	Reopened Change = "reopened"
	Resolved Change = "resolved"
)

// Incident is what is wrong at one place. From its Opened to its Resolved it is open.
type Incident struct {
	ID       string    `json:"id"`
	Cause    Cause     `json:"cause"`
	Symptoms []Symptom `json:"symptoms"`       // the gravest first
	Site     string    `json:"site,omitempty"` // of its host, or of all its hosts; or itself
	// Limiter is the one that is the incident, otherwise the one that most of its paths had when it opened.
	Limiter   string    `json:"limiter,omitempty"`
	Window    int64     `json:"window_bytes,omitempty"`
	Confirmed bool      `json:"confirmed"` // the paths that share an end or a link were tested
	Affected  int       `json:"affected"`  // directions, or hosts that are away
	Of        int       `json:"of"`        // that are known
	Paths     []Path    `json:"paths,omitempty"`
	Hosts     []string  `json:"hosts,omitempty"` // that are away
	Sites     []string  `json:"sites,omitempty"`
	Task      string    `json:"task,omitempty"` // if all paths are of one
	SinceAt   time.Time `json:"since_at"`
	OpenedAt  time.Time `json:"opened_at"`
	// ResolvedAt is zero while it is open.
	ResolvedAt     time.Time `json:"resolved_at,omitzero"`
	BackAt         time.Time `json:"back_at,omitzero"` // the first result as usual again, while others are tested
	Reported       bool      `json:"reported"`         // receivers know that it is open
	ReportedBefore bool      `json:"reported_before,omitempty"`
	Silenced       bool      `json:"silenced,omitempty"`
}

// Path is one direction of an incident with its figures when it was last judged.
type Path struct {
	Task       string  `json:"task"`
	From       string  `json:"from"`
	To         string  `json:"to"`
	GoodputBps float64 `json:"goodput_bps,omitempty"`
	UsualBps   float64 `json:"usual_bps,omitempty"`
	RTTMinS    float64 `json:"rtt_min_s,omitempty"`
	UsualRTTS  float64 `json:"usual_rtt_s,omitempty"`
	Limiter    string  `json:"limiter,omitempty"`
}

// Open reports whether an incident is open.
func (i *Incident) Open() bool { return i.ResolvedAt.IsZero() }

// Concerns reports whether a host is part of an incident.
func (i *Incident) Concerns(host string) bool {
	return i.Cause.Kind.Noun() == "host" && i.Cause.ID == host || slices.Contains(i.Hosts, host) ||
		slices.ContainsFunc(i.Paths, func(p Path) bool { return p.From == host || p.To == host })
}

// has reports whether a direction belongs to an incident.
func (i *Incident) has(d *Direction) bool {
	return slices.ContainsFunc(i.Paths, func(p Path) bool { return p.Task == d.Task && p.From == d.From && p.To == d.To })
}

// Notice is a report of an incident to receivers.
type Notice struct {
	Change   Change            `json:"change"`
	Incident Incident          `json:"incident"`
	Names    map[string]string `json:"names,omitempty"` // of its hosts, by ID
}

// Decision is what follows from a state.
type Decision struct {
	Incidents []Incident // new and different ones
	Notices   []Notice
	Pairs     []string  // due at once
	Waiting   []string  // pairs that were made due and have no end yet
	Wake      time.Time // when time alone may change the decision; zero: never
}

// signOf returns the sign of a level that is beyond its usual range on the worse side.
func signOf(value float64, l recheck.Level, worse int) Sign {
	return Sign{Off: value > 0 && l.Usual.Level > 0 && l.Usual.Beyond(value) == worse, Since: l.Worse}
}

// Freeze returns the level of a direction that is frozen: the usual one stays as it was.
func Freeze(before, now recheck.Level) recheck.Level {
	if now.Worse.IsZero() {
		now.Worse = before.Worse
	}
	return recheck.Level{Usual: before.Usual, Worse: now.Worse}
}

// Frozen returns the directions of open incidents whose usual level stays as before, so that their end is known.
func Frozen(incidents []Incident, now time.Time) map[Path]bool {
	frozen := map[Path]bool{}
	for i := range incidents {
		known := &incidents[i]
		if !known.Open() || !slices.ContainsFunc(known.Symptoms, isLevel) || now.After(known.OpenedAt.Add(Accepted)) {
			continue
		}
		for _, p := range known.Paths {
			frozen[Path{Task: p.Task, From: p.From, To: p.To}] = true
		}
	}
	return frozen
}
