// Package bus connects the agents of a fleet with its hub: subjects, messages, and an agent's connection.
//
// Agents ask the hub on up subjects, and the hub asks agents on down subjects. The hub replies to a result after it has
// stored the document. Messages are JSON with durations, never clock times, so that clocks that
// differ cannot make two tests meet.
package bus

import (
	"encoding/json"
	"net/netip"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
)

// Version is the version of the messages. A hub and an agent with different ones refuse each other.
const Version = 1

// MaxMessage is the largest message in bytes.
const MaxMessage = 1 << 20

// MaxAddresses limits the addresses of an agent in an order.
const MaxAddresses = 16

// MaxURLs limits the URLs of the hubs that an agent knows.
const MaxURLs = 16

// The subjects of an agent. Prefix is the same for a whole fleet.
const (
	Prefix = "fp"

	HelloKind  = "hello"  // request: Hello → Welcome, after each connect
	HereKind   = "here"   // Here, every HereEvery
	ResultKind = "result" // request: a document → Receipt
	FailedKind = "failed" // request: Failed → Receipt
	ServedKind = "served" // Served, by the far end of a run

	OrderKind = "order" // request: Order → OrderReply
	StopKind  = "stop"  // Stop
	PingKind  = "ping"  // request: Ping → an empty object, by that process only
	HubsKind  = "hubs"  // Hubs, when a hub joins or leaves
)

// HubSubject is where a hub asks the others of its bus whether one of them leads. No agent may use
// it.
const HubSubject = Prefix + ".hub"

// MaxOrder is the longest run that an agent accepts.
const MaxOrder = 30 * time.Minute

// Up returns the subject on which an agent sends a kind of message to the hub.
func Up(agent, kind string) string { return Prefix + ".up." + agent + "." + kind }

// AnyUp returns the subject of a kind of message of all agents.
func AnyUp(kind string) string { return Up("*", kind) }

// Down returns the subject on which the hub sends a kind of message to an agent.
func Down(agent, kind string) string { return Prefix + ".down." + agent + "." + kind }

// Inbox returns the prefix of the subjects on which an agent gets replies.
func Inbox(agent string) string { return "_INBOX_" + agent }

// AgentOf returns the agent of an up subject.
func AgentOf(subject string) string {
	parts := strings.Split(subject, ".")
	if len(parts) != 4 || parts[0] != Prefix || parts[1] != "up" {
		return ""
	}
	return parts[2]
}

// Presence: an agent reports every HereEvery, and is away after AwayAfter without a message.
const (
	HereEvery = 20 * time.Second
	AwayAfter = 60 * time.Second
)

// Span is a duration in messages, in nanoseconds.
type Span = time.Duration

// Hello is an agent's first message on a connection.
type Hello struct {
	V         int               `json:"v"`
	Instance  string            `json:"instance,omitempty"` // random, of the process
	Version   string            `json:"version"`            // of the program
	HostID    string            `json:"host_id,omitempty"`
	Kernel    string            `json:"kernel,omitempty"`
	Addresses []netip.Addr      `json:"addresses,omitempty"` // on which other agents may reach it
	Port      int               `json:"port"`
	Labels    map[string]string `json:"labels,omitempty"`
	Limits    Limits            `json:"limits"`
	ClockNs   int64             `json:"clock_ns"`
	Waiting   int               `json:"waiting"` // results in its outbox
	Lead                        // the newest that it followed
}

// Agent returns the member of a mesh that sent the hello.
func (h Hello) Agent(id, name string, labels map[string]string) mesh.Agent {
	return mesh.Agent{ID: id, Name: name, Labels: labels, DayBytes: h.Limits.DayBytes, DayTime: h.Limits.DayTimeNs}
}

// Limits are an agent's own limits, for the hub's plan.
type Limits struct {
	DayBytes  int64   `json:"day_bytes,omitempty"`
	DayTimeNs Span    `json:"day_time_ns,omitempty"`
	TimeNs    Span    `json:"time_ns,omitempty"`  // of one transfer
	RateBps   float64 `json:"rate_bps,omitempty"` // of one transfer
	Broken    string  `json:"broken,omitempty"`   // the fault of the agent's file: it makes no tests
}

// Welcome is the hub's reply to Hello.
type Welcome struct {
	V       int    `json:"v"`
	Name    string `json:"name"` // of the agent
	Lead           // the agent follows it; without an epoch it keeps its own
	ClockNs int64  `json:"clock_ns"`
	// URLs are where agents reach the hubs of the fleet, as in a token.
	URLs  []string `json:"urls,omitempty"`
	Error string   `json:"error,omitempty"`    // the hub does not take this agent
	Later Span     `json:"later_ns,omitempty"` // with Error: it may take it after this time
	// with Later: the agent closes its connection until then
	Leave bool `json:"leave,omitempty"`
}

// Here is an agent's heartbeat.
type Here struct {
	V        int    `json:"v"`
	Instance string `json:"instance,omitempty"`
	ClockNs  int64  `json:"clock_ns"`
	Testing  bool   `json:"testing"`
	Waiting  int    `json:"waiting"`
}

// Ping asks one of the processes with an agent's key whether it is there.
type Ping struct {
	Instance string `json:"instance"`
}

// The roles of an agent in a run.
const (
	RoleServe = "serve" // the far end: registers the run's key
	RoleTest  = "test"  // the near end: connects and measures both directions
)

// Order asks an agent to take part in a run.
type Order struct {
	V    int    `json:"v"`
	Run  string `json:"run"`
	Role string `json:"role"`
	Lead
	Key string `json:"key"` // of this run alone
	// Instance is the process that the order is for; others with the agent's key ignore it. "" is any.
	Instance string `json:"instance,omitempty"`
	// Within is how long the far end admits the near one, and Until how long the run may last, from receipt.
	Within Span `json:"within_ns"`
	Until  Span `json:"until_ns"`
	// Far is the other agent's name, and Peers its addresses.
	Far     string           `json:"far"`
	Peers   []netip.AddrPort `json:"peers,omitempty"` // RoleTest
	From    []netip.Prefix   `json:"from,omitempty"`  // RoleServe: the near end's
	Spec    Spec             `json:"spec"`
	Task    string           `json:"task"`
	Origin  string           `json:"origin"`
	PathKey string           `json:"path_key"`
}

// Spec is the size of a run's transfers.
type Spec struct {
	Time       Span    `json:"time_ns"`         // of each direction
	Bytes      int64   `json:"bytes,omitempty"` // of each direction; 0 is no limit, which an agent with a byte budget refuses
	Bps        float64 `json:"bps,omitempty"`   // pacing rate; 0 is no limit
	Streams    int     `json:"streams"`
	Congestion string  `json:"congestion,omitempty"`
}

// OrderReply is an agent's reply to an order.
type OrderReply struct {
	Refused mesh.Reason `json:"refused,omitempty"` // "": accepted
	Detail  string      `json:"detail,omitempty"`
	Port    int         `json:"port,omitempty"` // of RoleServe
	*Lead               // with Stale: the one that the agent follows
}

// Failed reports a run that gave no document.
type Failed struct {
	V      int         `json:"v"`
	Run    string      `json:"run"`
	Reason mesh.Reason `json:"reason"`
	Detail string      `json:"detail,omitempty"`
}

// Served is the far end's own count of a run. The hub compares it with the near end's document.
type Served struct {
	V         int    `json:"v"`
	Run       string `json:"run"`
	UpBytes   int64  `json:"up_bytes"`   // payload from the near end; -1: not counted
	DownBytes int64  `json:"down_bytes"` // payload to the near end; -1: not counted
	// UpNs and DownNs are the times from the first to the last byte, by this end's clock; 0: not known.
	UpNs   Span `json:"up_ns,omitempty"`
	DownNs Span `json:"down_ns,omitempty"`
}

// Receipt is the hub's reply to a result.
type Receipt struct {
	Stored  bool   `json:"stored"`            // and on the hub's disk: the agent forgets it
	Refused string `json:"refused,omitempty"` // for ever: the agent forgets it
	Later   Span   `json:"later_ns,omitempty"`
}

// Stop ends a run.
type Stop struct {
	Run string `json:"run"`
}

// Hubs are the URLs at which agents reach the hubs of the fleet.
type Hubs struct {
	URLs []string `json:"urls"`
}

// JoinRequest is the body of POST /api/v1/join.
type JoinRequest struct {
	Secret string            `json:"secret"`
	NKey   string            `json:"nkey"`
	HostID string            `json:"host_id"`
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels,omitempty"`
}

// JoinReply is the hub's reply to JoinRequest.
type JoinReply struct {
	ID    string   `json:"id"`
	Name  string   `json:"name"`
	URLs  []string `json:"urls"`
	Error string   `json:"error,omitempty"`
}

// JoinPath is where a hub admits agents.
const JoinPath = "/api/v1/join"

// Decode decodes a message. It rejects oversized ones.
func Decode(data []byte, into any) error {
	if len(data) > MaxMessage {
		return errTooLarge
	}
	return json.Unmarshal(data, into)
}

// Encode encodes a message; all are encodable.
func Encode(message any) []byte {
	text, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	return text
}
