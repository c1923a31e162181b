package transfer

import (
	"errors"
	"math"
	"testing"
	"time"
)

// TestValidate expects the field's name for each value out of bounds.
func TestValidate(t *testing.T) {
	for field, change := range map[string]func(*Spec){
		"":                   func(*Spec) {},
		"Direction":          func(s *Spec) { s.Direction = "sideways" },
		"Time":               func(s *Spec) { s.Time = -1 },
		"Streams":            func(s *Spec) { s.Streams = 1 << 30 },
		"Program.WriteBytes": func(s *Spec) { s.Program = Program{WriteBytes: 1, RequestResponse: true} },
		"Program.WriteBps":   func(s *Spec) { s.Program.WriteBps = math.NaN() },
		"Program.ReadBps":    func(s *Spec) { s.Program.ReadBps = 999 },
		"Near.SendBuffer":    func(s *Spec) { s.Near.SendBuffer = -1 },
		"Far.ReceiveBuffer":  func(s *Spec) { s.Far.ReceiveBuffer = 1 << 31 },
		"Near.Clamp":         func(s *Spec) { s.Near.Clamp = -5 },
		"Far.MSS":            func(s *Spec) { s.Far.MSS = 87 },
		"Near.TOS":           func(s *Spec) { s.Near.TOS = 1 },
		"Far.PacingBps":      func(s *Spec) { s.Far.PacingBps = math.Inf(1) },
	} {
		spec := Spec{Direction: Up, Time: time.Second, Near: Socket{MSS: 1460, TOS: 184}, Far: Socket{ReceiveBuffer: 1 << 20}}
		change(&spec)
		err := spec.Validate()
		var u *Unsupported
		if errors.As(err, &u); field == "" && err != nil || field != "" && (u == nil || u.Field != field) {
			t.Errorf("%q: %v", field, err)
		}
	}
}
