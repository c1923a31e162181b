package transfer

import "context"

// Test is a measurement of one leg, or of two legs of one protocol at the same time: the first up, the second down.
type Test struct{ Legs []Leg }

// Leg is one direction of a Test. Exactly one of its fields is set.
type Leg struct {
	TCP       *Spec
	Datagrams *DatagramSpec // over UDP
}

// Outcome is the result of a Leg. After an error it has the part that was measured; both fields are nil if nothing was.
type Outcome struct {
	TCP       *Result
	Datagrams *DatagramResult
}

// TCP returns a Test over TCP with a leg for each Spec.
func TCP(specs ...Spec) (t Test) {
	for i := range specs {
		t.Legs = append(t.Legs, Leg{TCP: &specs[i]})
	}
	return t
}

// UDP returns a Test over UDP with a leg for each Spec.
func UDP(specs ...DatagramSpec) (t Test) {
	for i := range specs {
		t.Legs = append(t.Legs, Leg{Datagrams: &specs[i]})
	}
	return t
}

// Values of Unsupported.Field that are not a Spec's: the far end has no UDP; it carries one direction at a time.
const (
	FieldUDP  = "UDP"
	FieldLegs = "Legs"
)

// Specs returns the one or two Specs of a Test over TCP, or of a Test over UDP. It returns *Unsupported for any other
// Test.
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
			return nil, nil, &Unsupported{Field: FieldLegs, Reason: "a leg is either TCP or UDP"}
		}
	}
	switch {
	case len(tcp) > 0 && len(udp) > 0:
		err = &Unsupported{Field: FieldLegs, Reason: "TCP and UDP are measured one after the other"}
	case len(directions) == 0 || len(directions) > 2:
		err = &Unsupported{Field: FieldLegs, Reason: "a test has one leg or two"}
	case len(directions) == 2 && (directions[0] != Up || directions[1] != Down):
		err = &Unsupported{Field: FieldLegs, Reason: "the first of two legs goes up and the second down"}
	}
	if err != nil {
		return nil, nil, err
	}
	return tcp, udp, nil
}

// noRequests refuses a load of requests.
var noRequests = &Unsupported{Field: FieldRequests, Reason: "only a fullpipe server responds to a load of requests"}

// Requests returns the Spec of a load of requests; ok is false for another Test.
func (t Test) Requests() (spec Spec, ok bool) {
	tcp, _, err := t.Specs()
	if err != nil || len(tcp) != 1 || !tcp[0].Requests.On() {
		return Spec{}, false
	}
	return tcp[0], true
}

// OneWay returns the Spec of a Test with one leg over TCP, for far ends that support no other. udp and both are the
// reasons in the *Unsupported for UDP and for two legs.
func (t Test) OneWay(udp, both string) (Spec, error) {
	tcp, _, err := t.Specs()
	switch {
	case err != nil:
		return Spec{}, err
	case len(tcp) == 0:
		return Spec{}, &Unsupported{Field: FieldUDP, Reason: udp}
	case len(tcp) > 1:
		return Spec{}, &Unsupported{Field: FieldLegs, Reason: both}
	case tcp[0].Requests.On():
		return Spec{}, noRequests
	}
	return tcp[0], nil
}

// Run measures one TCP transfer alone.
func Run(ctx context.Context, p Peer, spec Spec, each func(Interval)) (*Result, error) {
	outcomes, err := p.Run(ctx, TCP(spec), each)
	if len(outcomes) == 0 {
		return nil, err
	}
	return outcomes[0].TCP, err
}

// RunBoth measures two TCP transfers at the same time. With an error, either result may be nil.
func RunBoth(ctx context.Context, p Peer, up, down Spec, each func(Interval)) (*Result, *Result, error) {
	outcomes, err := p.Run(ctx, TCP(up, down), each)
	if len(outcomes) < 2 {
		return nil, nil, err
	}
	return outcomes[0].TCP, outcomes[1].TCP, err
}

// RunDatagrams measures one UDP transfer alone.
func RunDatagrams(ctx context.Context, p Peer, spec DatagramSpec, each func(Interval)) (*DatagramResult, error) {
	outcomes, err := p.Run(ctx, UDP(spec), each)
	if len(outcomes) == 0 {
		return nil, err
	}
	return outcomes[0].Datagrams, err
}

// WithDirection returns a function that sets the direction of an interval and calls each with it. It returns nil if
// each is nil.
func WithDirection(d Direction, each func(Interval)) func(Interval) {
	if each == nil {
		return nil
	}
	return func(i Interval) {
		i.Direction = d
		each(i)
	}
}
