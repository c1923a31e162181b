package hub

import (
	"errors"
	"regexp"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/foreign"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// maxBps is the greatest goodput that a hub takes from an agent: 100 Tbit/s.
const maxBps = 1e14

// decodeResult decodes a document and rejects one whose figures cannot be true.
func decodeResult(data []byte) (*record.Measure, error) {
	if len(data) > bus.MaxMessage {
		return nil, errors.New("the document is too large")
	}
	decoded, err := record.Decode(data, nil)
	if err != nil {
		return nil, err
	}
	doc, ok := decoded.(*record.Measure)
	if !ok {
		return nil, errors.New("not a measurement")
	}
	if len(doc.Directions) > 2 {
		return nil, errors.New("more than two directions")
	}
	for i := range doc.Directions {
		d := &doc.Directions[i]
		switch {
		case d.GoodputBps != nil && (*d.GoodputBps < 0 || *d.GoodputBps > maxBps):
			return nil, errors.New("impossible goodput")
		case contradictsItself(d):
			return nil, errors.New("the goodput is not its bytes in its time")
		case !limiterName.MatchString(string(d.Limiter)):
			return nil, errors.New("a limiter's name is lower-case words")
		}
	}
	return doc, nil
}

// contradictsItself reports whether a direction's goodput is not its bytes from the first to the last one. The bytes of
// the first read, which goodput leaves out, matter in short directions only.
func contradictsItself(d *record.Direction) bool {
	const tolerance = 0.1
	if d.GoodputBps == nil || d.Bytes == nil || d.DurationS == nil || *d.DurationS <= 0 {
		return false
	}
	bits := 8 * float64(*d.Bytes)
	moved := *d.GoodputBps * *d.DurationS
	long := *d.DurationS >= 1 && *d.Bytes >= 1e6
	return moved > (1+tolerance)*bits || long && moved < (1-tolerance)*bits
}

// limiterName matches the names of limiters, also of a newer version, and "" for none.
var limiterName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$|^$`)

// oneLine returns text of an agent as a short line without control characters, for events and alerts.
func oneLine(text string) string {
	const maxText = 200 // bytes
	return foreign.Line(text[:min(len(text), maxText)])
}
