package transfer

import "context"

// Test is what is measured at the same time: one leg, or two of one protocol, of which the
// first goes up and the second down.
type Test struct{ Legs []Leg }

// Leg is one direction of a Test. Exactly one of its fields is set.
type Leg struct {
	TCP       *Spec
	Datagrams *DatagramSpec // over UDP
}

// Outcome is what was seen of a Leg. With an error it holds what was measured until then;
// both fields are nil where nothing was.
type Outcome struct {
	TCP       *Result
	Datagrams *DatagramResult
}

// TCP is a Test over TCP with a leg for each Spec.
func TCP(specs ...Spec) (t Test) {
	for i := range specs {
		t.Legs = append(t.Legs, Leg{TCP: &specs[i]})
	}
	return t
}

// UDP is a Test over UDP with a leg for each Spec.
func UDP(specs ...DatagramSpec) (t Test) {
	for i := range specs {
		t.Legs = append(t.Legs, Leg{Datagrams: &specs[i]})
	}
	return t
}

// Fields of an *Unsupported that are no Spec's: a far end without UDP, and one that carries
// one direction at a time.
const (
	FieldUDP  = "UDP"
	FieldLegs = "Legs"
)

// Specs are the Test's, of which one kind has one or two and the other none. The error is
// *Unsupported for a Test of another shape.
func (t Test) Specs() (tcp []Spec, udp []DatagramSpec, err error) {
	var directions []Direction
	for _, leg := range t.Legs {
		switch {
		case leg.TCP != nil && leg.Datagrams == nil:
			tcp = append(tcp, *leg.TCP)
			directions = append(directions, leg.TCP.Direction)
		case leg.TCP == nil && leg.Datagrams != nil:
			udp = append(udp, *leg.Datagrams)
			directions = append(directions, leg.Datagrams.Direction)
		default:
			return nil, nil, &Unsupported{Field: FieldLegs, Why: "a leg is either TCP or UDP"}
		}
	}
	switch {
	case len(tcp) > 0 && len(udp) > 0:
		err = &Unsupported{Field: FieldLegs, Why: "TCP and UDP are measured one after the other"}
	case len(directions) == 0 || len(directions) > 2:
		err = &Unsupported{Field: FieldLegs, Why: "a test has one leg or two"}
	case len(directions) == 2 && (directions[0] != Up || directions[1] != Down):
		err = &Unsupported{Field: FieldLegs, Why: "of two legs the first goes up and the second down"}
	}
	if err != nil {
		return nil, nil, err
	}
	return tcp, udp, nil
}

// OneWay is the Spec of a Test that goes one way over TCP, for far ends that can do no more:
// udp and both say why another Test is *Unsupported.
func (t Test) OneWay(udp, both string) (Spec, error) {
	tcp, _, err := t.Specs()
	switch {
	case err != nil:
		return Spec{}, err
	case len(tcp) == 0:
		return Spec{}, &Unsupported{Field: FieldUDP, Why: udp}
	case len(tcp) > 1:
		return Spec{}, &Unsupported{Field: FieldLegs, Why: both}
	}
	return tcp[0], nil
}

// Run carries out one TCP transfer alone.
func Run(ctx context.Context, p Peer, spec Spec, each func(Interval)) (*Result, error) {
	outcomes, err := p.Run(ctx, TCP(spec), each)
	if len(outcomes) == 0 {
		return nil, err
	}
	return outcomes[0].TCP, err
}

// RunBoth carries out two TCP transfers at the same time; either result may be nil with an
// error.
func RunBoth(ctx context.Context, p Peer, up, down Spec, each func(Interval)) (*Result, *Result, error) {
	outcomes, err := p.Run(ctx, TCP(up, down), each)
	if len(outcomes) < 2 {
		return nil, nil, err
	}
	return outcomes[0].TCP, outcomes[1].TCP, err
}

// RunDatagrams carries out one UDP transfer alone.
func RunDatagrams(ctx context.Context, p Peer, spec DatagramSpec, each func(Interval)) (*DatagramResult, error) {
	outcomes, err := p.Run(ctx, UDP(spec), each)
	if len(outcomes) == 0 {
		return nil, err
	}
	return outcomes[0].Datagrams, err
}

// Toward makes each be told intervals of one direction; each may be nil.
func Toward(d Direction, each func(Interval)) func(Interval) {
	if each == nil {
		return nil
	}
	return func(i Interval) {
		i.Direction = d
		each(i)
	}
}
