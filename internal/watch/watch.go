// Package watch follows this host's TCP connections while they run and finds what limits each. It keeps exact counters
// of all connections, from dumps and from the kernel's last record of those that end, and samples the busiest ones for
// the live judge. It changes nothing (Config.Count apart) and needs no privilege for the user's own connections.
//
// The account and the judges are pure. The loop in run_linux.go asks the kernel; listed.go follows other systems'
// lists.
package watch

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/segments"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
	"github.com/fullpipe-net/fullpipe/internal/waits"
	"github.com/fullpipe-net/fullpipe/internal/watch/paths"
)

// Config selects what is watched. Its zero value watches every connection that leaves this
// host.
type Config struct {
	Match Match
	// Every is the time between two dumps, and the length of a period; 0 is two seconds.
	Every time.Duration
	// Sample is the time between two samples of the connections that matter; 0 is 50 ms.
	Sample time.Duration
	// Sampled is how many connections are sampled between the dumps, the heaviest; 0 is 64, which
	// take some 0.6 % of a core at 50 ms. Below 0 none is: all are judged by the clocks alone.
	Sampled int
	// Window is how far back the live judge looks; 0 is ten seconds.
	Window time.Duration
	// Cumulative makes one view of all the time until the watch ends.
	Cumulative bool
	// Namespace is the network namespace to look into, as /proc/PID/ns/net; "" is this
	// process's. Another one needs CAP_SYS_ADMIN, and is let go when that process has ended.
	Namespace string
	// Namespaces looks into the others in which processes of this host run as well, such as
	// containers'. It needs CAP_SYS_ADMIN and CAP_SYS_PTRACE; a refusal is listed in View.Unread.
	Namespaces bool
	// Count lets Windows count what each connection does as long as this watches; elsewhere it means nothing.
	Count bool
	// Anonymize replaces the addresses of what is shown by made-up ones.
	Anonymize bool
	// Losses, if not nil, returns this host's drops of a flow since the last call; nil: not known.
	Losses func(local, remote netip.AddrPort, d transfer.Direction) *transfer.Losses
	// Programs is the maximum number of programs that are sampled because they limit a flow, on
	// Linux; 0: none. It takes at most 2 % of a core.
	Programs int
	// Segments, if set, has the turns of connections, on Linux. The caller closes it.
	Segments *segments.Watch
}

// Default returns the Config of `watch` without options and of the live page: periods of 2 s, samples each 100 ms,
// four programs, and the network namespaces of containers where this process may look into them.
func Default() Config {
	return Config{Every: 2 * time.Second, Sample: 100 * time.Millisecond, Sampled: 64, Namespaces: SeesNamespaces(),
		Programs: 4}
}

func (c Config) complete() Config {
	c.Every = cmp.Or(c.Every, 2*time.Second)
	c.Sample = cmp.Or(c.Sample, 50*time.Millisecond)
	c.Window = cmp.Or(c.Window, 10*time.Second)
	c.Sampled = cmp.Or(c.Sampled, 64)
	return c
}

func (c Config) check() error {
	switch {
	case c.Every < 100*time.Millisecond || c.Every > time.Hour:
		return errors.New("a period is 100 ms to 1 h")
	case c.Sample < 10*time.Millisecond || c.Sample > c.Every:
		return errors.New("the time between two samples is 10 ms to a period")
	}
	return nil
}

// Flow is one direction of a connection in a period.
type Flow struct {
	Direction transfer.Direction
	Bytes     int64 // payload in the period
	Verdict   verdict.Verdict
	// Sampled reports that the verdict is based on samples, else on the kernel's cumulative clocks alone.
	Sampled bool
	RTT     time.Duration // the last smoothed one; 0 where nothing was sent
	MinRTT  time.Duration
	// RetransmittedBytes is the payload that was retransmitted in the period.
	RetransmittedBytes int64
	// Losses are the drops of this host in the period; nil: not known.
	Losses *transfer.Losses
	// InFlight is the last number of bytes in flight, Offered the receive window at that time; 0: not known.
	InFlight, Offered int64
	// Awaited reports that most of the time nothing had arrived since this end's program sent
	// something last.
	Awaited bool
	// Leg is the direction of another connection that moves the same data; nil: none is known.
	Leg *Leg
	// Waits has what the program waited for, where it limits the flow, the longest first.
	Waits []waits.Wait
}

// Observed is a connection in a period.
type Observed struct {
	*Connection
	Flows    []Flow // those with payload, the heavier first
	Symptoms Symptoms
	// Length is the time span of Flows where it differs from the view's; see View.Span.
	Length time.Duration
	// Requests is what samples show of requests; its Turns are 0 where they show none.
	Requests live.Requests
	// Turns are the requests by the connection's segments; nil: there were none, or no segments were seen.
	Turns *segments.Requests
	// Filler is the connection that fills the queue in which the requests wait; nil: none is known.
	Filler *Filler
	// SendBufferMax and ReceiveBufferMax are the ceilings of automatic sizing that the buffers have reached, in bytes;
	// 0: not reached, or not known.
	SendBufferMax, ReceiveBufferMax int64
}

// Bytes is the payload of both directions in the period.
func (s *Observed) Bytes() (sum int64) {
	for i := range s.Flows {
		sum += s.Flows[i].Bytes
	}
	return sum
}

// View has the connections of a period. It is valid only during the call that receives it.
type View struct {
	At          time.Duration  // since the watch began
	Length      time.Duration  // of the period
	Connections []Observed     // that moved payload and match, the heaviest first
	Matched     int            // connections that match, idle ones included
	Lighter     int            // ended connections above the limit, dropped; Totals includes their bytes
	Totals      Totals         // of all followed connections, including those that do not match
	Lost        uint64         // reports of ends that the kernel dropped since the beginning
	Standing    int            // open connections
	Took        time.Duration  // for the dump
	Unread      []verdict.Note // parts of the host that were not seen
	Anonymized  bool           // addresses are made-up ones
	// Segments says how complete Observed.Turns are.
	Segments segments.Turns
	// Shifts are changes of paths that were found in this period.
	Shifts     []paths.Event
	senders    []Observed // the sending ends on this host of what the connections receive, where they do not match
	neighbours []Observed // other connections to the same hosts, where they do not match
}

// counted returns a note with one number.
func counted(code verdict.NoteCode, of string, n int) verdict.Note {
	return verdict.Note{Code: code, Values: verdict.Values{of: float64(n)}}
}

// Span returns the time span of a connection's flows: the view's length, or more where the connection is not read in
// each period.
func (v *View) Span(s *Observed) time.Duration { return cmp.Or(s.Length, v.Length) }

// Run watches until ctx ends, until each returns an error, which Run returns, or until the process of Config.Namespace
// has ended. Each is called once a period, and once more at the
// end; with Config.Cumulative only then.
func Run(ctx context.Context, cfg Config, each func(*View) error) error {
	cfg = cfg.complete()
	if err := cfg.check(); err != nil {
		return err
	}
	return run(ctx, cfg, each)
}

// look adds the account's connections of the time span that ends now to a view.
func (a *Tracker) look(v *View, length time.Duration, cfg *Config, owner func(*Connection) Owner) {
	m := &cfg.Match
	walk := a.Period
	v.Lighter += a.lighter
	if cfg.Anonymize && a.names == nil {
		a.names = newPseudonyms()
	}
	if cfg.Cumulative {
		walk = a.moved
	}
	matches := func(c *Connection) bool {
		return (!cfg.followsNeighbours() || m.ends(c.Local, c.Remote)) && (!m.owned() || m.owner(c.Owner))
	}
	v.Matched += a.count(cfg, owner, matches)
	var others []*Connection
	walk(func(c *Connection) {
		if !matches(c) {
			others = append(others, c)
			return
		}
		sent := c.sentSince(&c.mark)
		received := c.Sample.Received - c.mark.Received
		bytes := max(sent, 0) + max(received, 0)
		unsent := sent == 0 && c.stuck(transfer.Up)
		unread := received == 0 && c.stuck(transfer.Down)
		if bytes == 0 && !unsent && !unread { // its state changed without payload
			return
		}
		if float64(bytes)*8 >= m.MinBps*length.Seconds() {
			seen := a.observe(c, cfg, sent > 0 || unsent, received > 0 || unread, owner)
			seen.Length = length
			v.Connections = append(v.Connections, seen)
		}
	})
	v.addSenders(others, a)
	v.addNeighbours(others, a, owner)
	v.Totals.add(a.totals)
	v.Standing += a.Len()
}

// finish sorts the connections and compares them.
func (v *View) finish() {
	v.order()
	v.shared()
	v.bothEnds()
	v.joinLegs()
	v.nameFillers()
}

// order sorts the heaviest first.
func (v *View) order() {
	slices.SortStableFunc(v.Connections, func(a, b Observed) int {
		return cmp.Or(cmp.Compare(b.Bytes(), a.Bytes()), cmp.Compare(a.Cookie, b.Cookie))
	})
}

// count returns how many connections match, idle ones included. It sets the owners of all where Match asks for owners.
func (a *Tracker) count(cfg *Config, owner func(*Connection) Owner, matches func(*Connection) bool) (n int) {
	if !cfg.Match.owned() && !cfg.followsNeighbours() {
		return len(a.open) + len(a.ended)
	}
	a.all(func(c *Connection) {
		if cfg.Match.owned() {
			c.Owner = owner(c)
		}
		if matches(c) {
			n++
		}
	})
	return n
}

// flow returns one direction of the connection since the period began.
func (c *Connection) flow(d transfer.Direction, receiveMax int64) Flow {
	f := Flow{Direction: d, Bytes: c.sentSince(&c.mark)}
	sends := d == transfer.Up
	if sends {
		f.RetransmittedBytes = c.Sample.RetransmittedBytes - c.mark.RetransmittedBytes
		f.RTT = c.Sample.RTT
		f.MinRTT = c.Sample.MinRTT
		f.InFlight = c.Sample.InFlight
		f.Offered = c.Sample.SendWnd
	} else {
		f.Bytes = c.Sample.Received - c.mark.Received
		f.Offered = c.Sample.ReceiveWnd
		f.Awaited = c.moves != nil && c.window.Answered() >= threshold.ExchangesWait.Value
	}
	switch {
	case f.Bytes < threshold.WatchedBytes && (f.Bytes > 0 || !c.stuck(d)) && !c.outstanding(threshold.ExchangesWait.Value):
		f.Verdict = verdict.Unobserved(verdict.Evidence{Code: verdict.TooLittleWatched,
			Values: verdict.Values{"bytes": float64(max(f.Bytes, 0))}})
	case len(c.window.Of) >= threshold.WatchedSamples:
		f.Verdict = c.sampled(receiveMax).Judge(sends)
		f.Sampled = true
	case sends:
		f.Verdict = live.ByCounters(c.mark.sample(), &c.Sample, c.tally)
	default:
		f.Verdict = c.tally.UnseenSender()
	}
	if c.Polled {
		f.Verdict = c.tally.LowerConfidence(f.Verdict)
	}
	return f
}

// stuck reports whether a direction without progress in the period had pending data: unacknowledged when it sends,
// unread when it receives.
func (c *Connection) stuck(d transfer.Direction) bool {
	switch span := c.Sample.At - c.mark.At; {
	case span <= 0 || !c.Established:
		return false
	case d == transfer.Up:
		return c.Unacked > 0 && c.outstanding(threshold.OutstandingShare)
	}
	return c.tally.AllUnread()
}

// outstanding reports whether sent data was outstanding for a share of the period: then even small
// requests matter.
func (c *Connection) outstanding(share float64) bool {
	span := c.Sample.At - c.mark.At
	return span > 0 && (c.Sample.Busy-c.mark.Busy).Seconds() >= share*span.Seconds()
}

// sampled returns the connection's window as its judge takes it, with the ceiling of automatic receive buffers.
func (c *Connection) sampled(receiveMax int64) *live.Watched {
	return &live.Watched{Samples: c.window, Congestion: c.Congestion, Handshake: c.Handshake,
		SendBuffer: c.SendBuffer, ReceiveBuffer: c.ReceiveBuffer, ReceiveBufferMax: receiveMax, PacingBps: c.MaxPacingBps,
		Acked: c.Sample.Acked,
		KnownWindow: func(bytes float64) bool {
			for _, port := range append([]uint16{c.Local.Port(), c.Remote.Port()}, catalog.PortsOf(c.Owner.Program)...) {
				if p, known := catalog.ProgramAt(port, bytes); known && p.Bytes > 0 {
					return true
				}
			}
			return false
		}}
}
