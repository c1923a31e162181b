package transfer

import (
	"errors"
	"testing"
)

func TestSpecs_RejectsOtherShapes(t *testing.T) {
	up, down := Spec{Direction: Up}, Spec{Direction: Down}
	udpUp, udpDown := DatagramSpec{Direction: Up}, DatagramSpec{Direction: Down}
	for name, c := range map[string]struct {
		test     Test
		tcp, udp int
	}{
		"up":             {TCP(up), 1, 0},
		"down":           {TCP(down), 1, 0},
		"both":           {TCP(up, down), 2, 0},
		"UDP":            {UDP(udpDown), 0, 1},
		"UDP both":       {UDP(udpUp, udpDown), 0, 2},
		"nothing":        {},
		"an empty leg":   {test: Test{Legs: make([]Leg, 1)}},
		"a leg of two":   {test: Test{Legs: []Leg{{TCP: &up, Datagrams: &udpUp}}}},
		"down before up": {test: TCP(down, up)},
		"up twice":       {test: UDP(udpUp, udpUp)},
		"three":          {test: TCP(up, down, up)},
		"TCP and UDP":    {test: Test{Legs: []Leg{{TCP: &up}, {Datagrams: &udpDown}}}},
	} {
		tcp, udp, err := c.test.Specs()
		var refused *Unsupported
		if bad := c.tcp+c.udp == 0; len(tcp) != c.tcp || len(udp) != c.udp || bad != errors.As(err, &refused) {
			t.Errorf("%s: %v, %v, %v", name, tcp, udp, err)
		}
	}
}
