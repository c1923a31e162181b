package threshold

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Number is a threshold that rules compare with and print. It does not change.
type Number struct {
	Name   string
	Value  float64 // of a time: nanoseconds
	Unit   string  // ratio, segments, bytes, ...; "time" for a Go duration
	Origin string  // where the value comes from
}

// Time returns the value of a threshold with the unit "time".
func (n *Number) Time() time.Duration { return time.Duration(n.Value) }

// Text returns the value without its unit, but for times: 0.9, 50 ms.
func (n *Number) Text() string {
	if n.Unit == "time" {
		return units.Time(n.Time())
	}
	return strconv.FormatFloat(n.Value, 'g', 4, 64)
}

// MarshalJSON writes name, value, unit and origin. A time is in seconds.
func (n *Number) MarshalJSON() ([]byte, error) {
	value := n.Value
	unit := n.Unit
	if unit == "time" {
		value = n.Time().Seconds()
		unit = "s"
	}
	return json.Marshal(struct {
		Name   string  `json:"name"`
		Value  float64 `json:"value"`
		Unit   string  `json:"unit"`
		Origin string  `json:"origin"`
	}{n.Name, value, unit, n.Origin})
}
