package record

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"time"
)

// Envelope identifies a measured document: its host, series, time and outcome. Other documents have none.
type Envelope struct {
	ID     string `json:"id,omitempty"`      // of this document, a UUIDv7
	TestID string `json:"test_id,omitempty"` // the same in both ends' documents of one test
	// HostID is random, made once and kept in the state directory; it is not the host's name.
	HostID string `json:"host_id,omitempty"`
	// PathKey names the series that a measurement belongs to: see SeriesID.Key.
	PathKey string  `json:"path_key,omitempty"`
	Origin  Origin  `json:"origin,omitempty"`
	Outcome Outcome `json:"outcome,omitempty"`
	// OutcomeCode says more of one that is not done, as the exit status does.
	OutcomeCode int      `json:"outcome_code,omitempty"`
	EndedAt     NsTime   `json:"ended_at_ns,omitzero"`
	TookS       *float64 `json:"took_s,omitempty"` // by the monotonic clock
	// ClockSynchronised says whether this host's clock was disciplined; absent: not known.
	ClockSynchronised *bool             `json:"clock_synchronised,omitempty"`
	FarClock          *FarClock         `json:"far_clock,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	// InForce are this host's settings that bear on transfers, by their names.
	InForce map[string]string `json:"settings_in_force,omitempty"`
	Commit  string            `json:"commit,omitempty"` // of the program
}

// NsTime is a UTC time in nanoseconds since 1970.
type NsTime int64

// Time returns the time in UTC.
func (t NsTime) Time() time.Time { return time.Unix(0, int64(t)).UTC() }

// FarClock is the far end's clock minus this host's, with its error bound.
type FarClock struct {
	OffsetS float64 `json:"offset_s"`
	BoundS  float64 `json:"bound_s"`
}

// Origin is the reason for a measurement.
type Origin string

// The origins, a closed list. A re-test follows an unusual result, so it never enters a baseline.
const (
	Manual    Origin = "manual"
	Scheduled Origin = "scheduled"
	Retest    Origin = "retest"
)

// Outcome is the way in which a measurement ended.
type Outcome string

// The closed list. A failure is a record too.
const (
	Done        Outcome = "done"
	Failed      Outcome = "failed"
	Refused     Outcome = "refused" // by the far end, or as impossible there
	Interrupted Outcome = "interrupted"
)

var idForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// IsID reports whether text has the form of NewID.
func IsID(text string) bool { return idForm.MatchString(text) }

// NewID returns a UUIDv7 (RFC 9562, section 5.7) of a time and random bytes from the caller. Identifiers sort by time.
func NewID(at time.Time, random [10]byte) string {
	var id [16]byte
	ms := uint64(at.UnixMilli())
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	copy(id[6:], random[:])
	id[6] = 0x70 | id[6]&0x0f
	id[8] = 0x80 | id[8]&0x3f
	text := hex.EncodeToString(id[:])
	return fmt.Sprintf("%s-%s-%s-%s-%s", text[:8], text[8:12], text[12:16], text[16:20], text[20:])
}
