package link

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Path describes two hosts and the network between them.
type Path struct {
	Profile    string // its name, or ""
	RTT        time.Duration
	Up, Down   Config // near to far, far to near
	HalfDuplex bool
	VPN        VPN
	Near, Far  Stack
}

// Error is an invalid argument in a path description, with a hint.
type Error struct{ Argument, Message, Hint string }

func (e *Error) Error() string { return e.Argument + ": " + e.Message }

// Try returns the hint.
func (e *Error) Try() string { return e.Hint }

const (
	defaultMTU      = 1500
	defaultHoldBack = time.Millisecond
	leastQueue      = 10 // packets; for queues in BDPs and the default
	maxDelay        = time.Minute
)

// Parse parses a profile name or "rate=100mbit,rtt=40ms,loss=0.01%,queue=1bdp", with an optional prefix "lab:".
// Settings after a name change it: "wan-40ms,loss=0.1%". Later settings win.
func Parse(text string) (Path, error) {
	d := draft{stacks: [2]string{defaultStack, defaultStack}}
	body := strings.TrimPrefix(strings.TrimSpace(text), "lab:")
	for i, part := range strings.Split(body, ",") {
		part = strings.TrimSpace(part)
		if !strings.Contains(part, "=") && i == 0 {
			p, err := findProfile(part)
			if err != nil {
				return Path{}, err
			}
			d.profile = p.Name
			for setting := range strings.SplitSeq(p.Text, ",") {
				if err := d.set(setting); err != nil {
					return Path{}, fmt.Errorf("profile %s: %w", p.Name, err)
				}
			}
			continue
		}
		if err := d.set(part); err != nil {
			return Path{}, err
		}
	}
	return d.path()
}

// draft collects settings. Those that depend on others, such as a queue in BDPs, are resolved last.
type draft struct {
	profile string
	result  Path
	queue   [2]queueText
	mark    [2]queueText
	stacks  [2]string
	changes [2][]func(*Stack) // to the hosts' stacks
}

type queueText struct {
	amount float64
	unit   string // "bdp", "packets" or "bytes"
}

// set applies one KEY=VALUE; a prefix limits it to one direction or host.
func (d *draft) set(setting string) error {
	key, value, found := strings.Cut(setting, "=")
	key = strings.ToLower(strings.TrimSpace(key))
	value = strings.TrimSpace(value)
	if !found {
		return &Error{setting, "not of the form key=value", "a profile's name comes first, settings after it: " +
			"wan-40ms,loss=0.1%"}
	}
	side, name, found := strings.Cut(key, ".")
	if !found {
		side = ""
		name = key
	}
	sides := []int{0, 1}
	oneHost := side == "near" || side == "far"
	switch side {
	case "":
	case "up", "near":
		sides = sides[:1]
	case "down", "far":
		sides = sides[1:]
	default:
		return &Error{key, fmt.Sprintf("unknown side %q", side), bothSides}
	}
	fail := func(err error) error {
		return &Error{key, fmt.Sprintf("%q: %v", value, err), example(name)}
	}
	k, known := keys[name]
	switch {
	case !known:
		return &Error{key, "unknown key", "one of " + strings.Join(keyNames(), ", ") + near(name, keyNames())}
	case value == "":
		return &Error{key, "no value", example(name)}
	case side != "" && k.scope == ofPath:
		return &Error{key, name + " belongs to the path as a whole", example(name)}
	case side != "" && oneHost != (k.scope == ofHost):
		return &Error{key, name + " does not go with " + side + ".", bothSides}
	}
	for _, i := range sides {
		if err := k.set(d, i, value); err != nil {
			return fail(err)
		}
	}
	return nil
}

const bothSides = "up. and down. for a direction, near. and far. for a host's stack"

// change records a change of a host's stack.
func (d *draft) change(i int, f func(*Stack)) { d.changes[i] = append(d.changes[i], f) }

// lane returns a direction's settings: 0 is up.
func (d *draft) lane(i int) *Config {
	if i == 0 {
		return &d.result.Up
	}
	return &d.result.Down
}

// path resolves settings that depend on each other.
func (d *draft) path() (Path, error) {
	p := &d.result
	p.Profile = d.profile
	for i := range 2 {
		c := d.lane(i)
		c.Delay = p.RTT / 2
		if i == 1 {
			c.Delay = p.RTT - p.RTT/2
		}
		if c.Jitter > 2*c.Delay {
			return Path{}, &Error{"jitter", fmt.Sprintf("%v is more than the RTT of %v allows", c.Jitter, p.RTT),
				"at most the rtt"}
		}
		if c.Reorder > 0 && c.HoldBack == 0 {
			c.HoldBack = max(defaultHoldBack, 3*serialization(defaultMTU, c.Rate))
		}
		d.settleQueue(i, c)
		d.settleMark(i, c)
		if c.FlowRate > 0 && (p.HalfDuplex || p.VPN.Kind == Gateway) {
			return Path{}, &Error{"flow", "a shared medium bounds no single connections, and gateways make one flow of all",
				"rate=" + units.Rate(c.FlowRate).String() + " in its place"}
		}
	}
	if err := p.settleVPN(); err != nil {
		return Path{}, err
	}
	for i, host := range []*Stack{&p.Near, &p.Far} {
		var err error
		*host, err = FindStack(d.stacks[i])
		if err != nil {
			return Path{}, err
		}
		for _, change := range d.changes[i] {
			change(host)
		}
	}
	return *p, nil
}

// settleQueue converts the queue size to bytes and packets. The default is 1 BDP. A size in BDPs is at least ten
// packets.
func (d *draft) settleQueue(i int, c *Config) {
	q := d.queue[i]
	switch q.unit {
	case "packets":
		c.QueuePackets = int64(q.amount)
		c.QueueBytes = 0
	case "bytes":
		c.QueuePackets = 0
		c.QueueBytes = int64(q.amount)
	default:
		if q.unit == "" {
			q.amount = 1
		}
		bdp := float64(c.Rate) / 8 * d.result.RTT.Seconds() * q.amount
		c.QueuePackets = 0
		c.QueueBytes = max(int64(math.Min(bdp, maxQueue)), leastQueue*int64(max(defaultMTU, c.MTU)))
	}
}

// settleMark converts the marking threshold to bytes, at least one.
func (d *draft) settleMark(i int, c *Config) {
	unit := map[string]float64{"": 0, "packets": defaultMTU, "bytes": 1,
		"bdp": float64(c.Rate) / 8 * d.result.RTT.Seconds()}[d.mark[i].unit]
	c.MarkBytes = int64(math.Min(d.mark[i].amount*unit, maxQueue))
	if d.mark[i].unit != "" {
		c.MarkBytes = max(c.MarkBytes, 1)
	}
}

func serialization(bytes int, rate int64) time.Duration {
	if rate <= 0 {
		return 0
	}
	return time.Duration(float64(bytes) * 8e9 / float64(rate))
}
