package units

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Duration is a time.Duration that JSON stores as a number of seconds.
type Duration time.Duration

// Seconds returns the duration as a number of seconds.
func (d Duration) Seconds() float64 { return time.Duration(d).Seconds() }

// String prints the duration as Time does.
func (d Duration) String() string { return Time(time.Duration(d)) }

// MarshalJSON writes the duration in seconds.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.Seconds()) }

// UnmarshalJSON reads a number of seconds, to the nearest nanosecond. It refuses a duration beyond 292 years.
func (d *Duration) UnmarshalJSON(text []byte) error {
	var seconds float64
	if err := json.Unmarshal(text, &seconds); err != nil {
		return err
	}
	ns := math.Round(seconds * float64(time.Second))
	if math.Abs(ns) >= math.MaxInt64 {
		return fmt.Errorf("%g s is not believable", seconds)
	}
	*d = Duration(ns)
	return nil
}
