package threshold

import (
	"embed"
	"encoding/json"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Named is a threshold with its name, so that rules can be printed. A time's value is in nanoseconds.
type Named struct {
	Name  string
	Value float64
}

// MarshalJSON writes name, value, unit and origin. A time is in seconds.
func (n Named) MarshalJSON() ([]byte, error) {
	value := n.Value
	unit := n.Unit()
	if unit == "time" {
		value = time.Duration(n.Value).Seconds()
		unit = "s"
	}
	return json.Marshal(struct {
		Name   string  `json:"name"`
		Value  float64 `json:"value"`
		Unit   string  `json:"unit"`
		Origin string  `json:"origin"`
	}{n.Name, value, unit, n.Origin()})
}

//go:embed *.go
var sources embed.FS

// declaration is one constant in the source: name, value, unit and origin.
var declaration = regexp.MustCompile(`(?m)^\s+(\w+)\s+= .+? // ([^|\n]+) \| (.+)$`)

// origins returns unit and origin of each threshold, as the source has them behind the number.
var origins = sync.OnceValue(func() map[string][2]string {
	all := map[string][2]string{}
	files, err := sources.ReadDir(".")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, file := range files {
		source, err := sources.ReadFile(file.Name())
		if err != nil {
			panic(err) // it is embedded
		}
		for _, m := range declaration.FindAllStringSubmatch(string(source), -1) {
			all[m[1]] = [2]string{m[2], m[3]}
		}
	}
	return all
})

// Unit returns the threshold's unit. "time" is a Go duration.
func (n Named) Unit() string { return origins()[n.Name][0] }

// Origin returns where the number comes from.
func (n Named) Origin() string { return origins()[n.Name][1] }

// Text returns the value without its unit, but for times: 0.9, 50 ms.
func (n Named) Text() string {
	if n.Unit() != "time" {
		return strconv.FormatFloat(n.Value, 'g', 4, 64)
	}
	return units.Time(time.Duration(n.Value))
}
