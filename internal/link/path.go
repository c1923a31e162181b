package link

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Path is two hosts and what lies between them.
type Path struct {
	Profile    string // its name, "" when it was written out
	RTT        time.Duration
	Up, Down   Config // near to far, far to near
	HalfDuplex bool
	Near, Far  Stack
}

// Error is a fault in a path's text: in which argument, what was wrong, what would be
// right.
type Error struct{ Argument, Message, Hint string }

func (e *Error) Error() string { return e.Argument + ": " + e.Message }

// Try tells what would be right.
func (e *Error) Try() string { return e.Hint }

const (
	defaultMTU      = 1500
	defaultHoldBack = time.Millisecond
	leastQueue      = 10 // packets, where the queue is stated in BDPs or not at all
	maxDelay        = time.Minute
)

// Parse reads a profile's name or "rate=100mbit,rtt=40ms,loss=0.01%,queue=1bdp", either
// with or without "lab:" in front. A name may be followed by settings that change it:
// "wan-40ms,loss=0.1%". Later settings win over earlier ones.
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

// draft gathers settings; what depends on others (a queue in BDPs) is settled last.
type draft struct {
	profile string
	result  Path
	queue   [2]queueText
	stacks  [2]string
}

type queueText struct {
	amount float64
	unit   string // "bdp", "packets" or "bytes"
}

// set carries out one KEY=VALUE. A key is for both directions or, with up. or down. in
// front, for one; stack is for both hosts or, with near. or far., for one.
func (d *draft) set(setting string) error {
	key, value, found := strings.Cut(setting, "=")
	key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
	if !found {
		return &Error{setting, "not of the form key=value", "a profile's name comes first, settings after it: wan-40ms,loss=0.1%"}
	}
	side, name, found := strings.Cut(key, ".")
	if !found {
		side, name = "", key
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
		return &Error{key, fmt.Sprintf("unknown side %q", side), "up. and down. for a direction, near. and far. for a host's stack"}
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
	case side != "" && k.whole:
		return &Error{key, name + " belongs to the path as a whole", example(name)}
	case oneHost != (name == "stack") && side != "":
		return &Error{key, name + " does not go with " + side + ".", "up. and down. for a direction, near. and far. for a host's stack"}
	}
	for _, i := range sides {
		if err := k.set(d, i, value); err != nil {
			return fail(err)
		}
	}
	return nil
}

// lane is the direction that a setting is for: 0 is up.
func (d *draft) lane(i int) *Config {
	if i == 0 {
		return &d.result.Up
	}
	return &d.result.Down
}

// path settles what depends on more than one setting.
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
			return Path{}, &Error{"jitter", fmt.Sprintf("%v is more than the RTT of %v allows", c.Jitter, p.RTT), "at most the rtt"}
		}
		if c.Reorder > 0 && c.HoldBack == 0 {
			c.HoldBack = max(defaultHoldBack, 3*serialization(defaultMTU, c.Rate))
		}
		d.settleQueue(i, c)
	}
	var err error
	if p.Near, err = FindStack(d.stacks[0]); err != nil {
		return Path{}, err
	}
	if p.Far, err = FindStack(d.stacks[1]); err != nil {
		return Path{}, err
	}
	return *p, nil
}

// settleQueue turns what was said of a queue into bytes and packets. BDPs (one, when
// nothing was said) come to at least ten packets; bytes and packets are taken exactly.
func (d *draft) settleQueue(i int, c *Config) {
	q := d.queue[i]
	switch q.unit {
	case "packets":
		c.QueuePackets, c.QueueBytes = int64(q.amount), 0
	case "bytes":
		c.QueuePackets, c.QueueBytes = 0, int64(q.amount)
	default:
		if q.unit == "" {
			q.amount = 1
		}
		bdp := float64(c.Rate) / 8 * d.result.RTT.Seconds() * q.amount
		c.QueuePackets, c.QueueBytes = 0, max(int64(math.Min(bdp, maxQueue)), leastQueue*int64(max(defaultMTU, c.MTU)))
	}
}

func serialization(bytes int, rate int64) time.Duration {
	if rate <= 0 {
		return 0
	}
	return time.Duration(float64(bytes) * 8e9 / float64(rate))
}

// key is one word of a path's text.
type key struct {
	example string
	about   string
	whole   bool // no up. or down.
	set     func(d *draft, side int, value string) error
}

var keys = map[string]key{
	"rate": {"rate=100mbit", "bits a second at the IP layer; or unlimited", false, func(d *draft, i int, v string) error {
		if v == "unlimited" {
			d.lane(i).Rate = 0
			return nil
		}
		r, err := rate(v)
		d.lane(i).Rate = r
		return err
	}},
	"overhead": {"overhead=38", "bytes that each packet takes on the line besides (38: Ethernet)", false, func(d *draft, i int, v string) error {
		return whole(v, 0, 1000, &d.lane(i).Overhead)
	}},
	"rtt": {"rtt=40ms", "round trip, half in each direction", true, func(d *draft, _ int, v string) error {
		return span(v, 2*maxDelay, &d.result.RTT)
	}},
	"jitter": {"jitter=5ms", "spread of the delay, without overtaking", false, func(d *draft, i int, v string) error {
		return span(v, maxDelay, &d.lane(i).Jitter)
	}},
	"loss": {"loss=0.01% or loss=1%/8", "share lost; with /N in bursts of N on average", false, func(d *draft, i int, v string) error {
		share, burst, bursty := strings.Cut(v, "/")
		c := d.lane(i)
		c.LossBurst = 0
		if err := probability(share, &c.Loss); err != nil || !bursty {
			return err
		}
		b, err := strconv.ParseFloat(strings.TrimSpace(burst), 64)
		if err != nil || !(b >= 1 && b <= 1e6) {
			return fmt.Errorf("a burst of %q packets", burst)
		}
		if c.Loss/(1-c.Loss)/b > 1 {
			return fmt.Errorf("bursts of %v packets cannot lose %v of all", b, c.Loss)
		}
		c.LossBurst = b
		return nil
	}},
	"reorder": {"reorder=1% or reorder=1%/5ms", "share held back; with /TIME for so long", false, func(d *draft, i int, v string) error {
		share, hold, timed := strings.Cut(v, "/")
		c := d.lane(i)
		c.HoldBack = 0
		if err := probability(share, &c.Reorder); err != nil || !timed {
			return err
		}
		return span(hold, maxDelay, &c.HoldBack)
	}},
	"duplicate": {"duplicate=0.1%", "share that arrives twice", false, func(d *draft, i int, v string) error {
		return probability(v, &d.lane(i).Duplicate)
	}},
	"queue": {"queue=1bdp, queue=150kB or queue=100packets", "what may wait for the line: BDPs (at least 10 packets), bytes or packets", false, func(d *draft, i int, v string) (err error) {
		d.queue[i], err = parseQueue(v)
		return err
	}},
	"mtu": {"mtu=1400", "the largest packet that gets through", false, func(d *draft, i int, v string) error {
		return whole(v, 576, 65535, &d.lane(i).MTU)
	}},
	"icmp": {"icmp=send or icmp=drop", "whether the sender is told of the mtu; drop makes a black hole", false, func(d *draft, i int, v string) error {
		return choice(v, &d.lane(i).Silent, "send", "drop")
	}},
	"police": {"police=50mbit/200kB", "rate and burst beyond which packets are dropped at once", false, func(d *draft, i int, v string) error {
		r, burst, found := strings.Cut(v, "/")
		if !found {
			return fmt.Errorf("no burst")
		}
		// The slash may also be that of "mbit/s".
		if rest, ok := strings.CutPrefix(burst, "s/"); ok {
			burst = rest
		}
		c := d.lane(i)
		var err error
		if c.PoliceRate, err = rate(r); err != nil {
			return err
		}
		size, err := units.ParseSize(burst)
		if err != nil {
			return err
		}
		if size < defaultMTU || size > 1<<30 {
			return fmt.Errorf("a burst of %d bytes is not between 1500 bytes and 1 GiB", int64(size))
		}
		c.PoliceBurst = int64(size)
		return nil
	}},
	"aggregate": {"aggregate=5ms", "packets are handed over together, once each such time", false, func(d *draft, i int, v string) error {
		return span(v, time.Second, &d.lane(i).Aggregate)
	}},
	"duplex": {"duplex=half or duplex=full", "half: one medium for both directions", true, func(d *draft, _ int, v string) error {
		return choice(v, &d.result.HalfDuplex, "full", "half")
	}},
	"strip": {"strip=wscale or strip=sack+timestamps", "options that a middlebox takes out of handshakes; joined by +", false, func(d *draft, i int, v string) error {
		var all Options
		for name := range strings.SplitSeq(v, "+") {
			o, ok := optionNames[strings.TrimSpace(name)]
			if !ok {
				return fmt.Errorf("unknown option %q", name)
			}
			all |= o
		}
		d.lane(i).Strip = all
		return nil
	}},
	"seed": {"seed=1", "chooses the packets that are lost", true, func(d *draft, _ int, v string) error {
		n, err := strconv.ParseUint(v, 10, 63)
		if err != nil {
			return fmt.Errorf("not a whole number")
		}
		d.result.Up.Seed, d.result.Down.Seed = n, n
		return nil
	}},
	"stack": {"stack=windows-2000", "how a host's TCP behaves", false, func(d *draft, i int, v string) error {
		if _, err := FindStack(v); err != nil {
			return err
		}
		d.stacks[i] = v
		return nil
	}},
}

var optionNames = map[string]Options{"wscale": WindowScale, "sack": SACK, "timestamps": Timestamps}

// Setting explains one key of a path's text.
type Setting struct{ Name, Example, About string }

// Settings lists the keys that Parse knows, by name.
func Settings() (all []Setting) {
	for _, name := range keyNames() {
		all = append(all, Setting{name, keys[name].example, keys[name].about})
	}
	return all
}

func keyNames() []string {
	names := make([]string, 0, len(keys))
	for name := range keys {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func example(name string) string { return keys[name].example }
