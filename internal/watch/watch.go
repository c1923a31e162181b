// Package watch follows this host's TCP connections while they run and says what limits
// each: exact accounts of all of them, from dumps and from the kernel's last word on those
// that end, and samples of the few that move most, which the live judge reads. It changes
// nothing, but with Config.Count what Windows counts, and needs no privilege for what the user may see.
//
// The account and the judges are pure. The loop that asks the kernel is Linux's; other systems are asked for lists.
package watch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
	"github.com/fullpipe-net/fullpipe/internal/verdict/watched"
	"github.com/fullpipe-net/fullpipe/internal/watch/paths"
)

// Config says what is watched. Its zero value watches every connection that leaves this
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
	// containers'. It needs CAP_SYS_ADMIN and CAP_SYS_PTRACE; what is refused is told in View.Unread.
	Namespaces bool
	// Count lets Windows count what each connection does as long as this watches; elsewhere it means nothing.
	Count bool
	// Anonymize replaces the addresses of what is shown by made-up ones.
	Anonymize bool
}

// Default returns the Config of `watch` without options and of the live page: periods of 2 s, samples each 100 ms, and
// the network namespaces of containers where this process may look into them.
func Default() Config {
	return Config{Every: 2 * time.Second, Sample: 100 * time.Millisecond, Sampled: 64, Namespaces: SeesNamespaces()}
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
	// Sampled says that the verdict rests on samples; else on the kernel's cumulative
	// clocks alone.
	Sampled bool
	RTT     time.Duration // the last smoothed one; 0 where nothing was sent
	MinRTT  time.Duration
	Resent  int64 // payload bytes that were sent again in the period
	// InFlight is what was under way last, Offered the receiver's window then; 0: not known.
	InFlight, Offered int64
}

// Seen is one connection in a period.
type Seen struct {
	*Connection
	Flows []Flow // those with payload, the heavier first
	Signs Signs
	// Length is what Flows tell of, where that is not the view's; see View.Span.
	Length time.Duration
	// SendBufferMax and ReceiveBufferMax are the ceilings of automatic sizing that the buffers have reached, in bytes;
	// 0: not reached, or not known.
	SendBufferMax, ReceiveBufferMax int64
}

// Bytes is the payload of both directions in the period.
func (s *Seen) Bytes() (sum int64) {
	for i := range s.Flows {
		sum += s.Flows[i].Bytes
	}
	return sum
}

// View is what a period showed. It is valid only during the call that it is given to.
type View struct {
	At         time.Duration // since the watch began
	Length     time.Duration // of the period
	Seen       []Seen        // that moved payload and match, the heaviest first
	Matched    int           // connections that match, idle ones included
	Lighter    int           // connections that ended and were too many to be kept; Totals has their bytes
	Totals     Totals        // of every connection that is followed, matching or not
	Lost       uint64        // ends that found no room and so were not told, since the beginning
	Standing   int           // connections that stand
	Took       time.Duration // for the dump
	Unread     []string      // what could not be seen, and why
	Anonymized bool          // addresses are made-up ones
	// Shifts are what was found of paths in this period, by whoever follows them.
	Shifts []paths.Event
}

// Span is how long what is told of a connection took: the view's length, or longer where it is not
// looked at in each period.
func (v *View) Span(s *Seen) time.Duration { return cmp.Or(s.Length, v.Length) }

// Run watches until ctx ends or each answers an error, which it then returns, or until the
// process of Config.Namespace has ended. Each is called once a period, and once more at the
// end; with Config.Cumulative only then.
func Run(ctx context.Context, cfg Config, each func(*View) error) error {
	cfg = cfg.complete()
	if err := cfg.check(); err != nil {
		return err
	}
	return run(ctx, cfg, each)
}

// look adds to a view what the account has of a time that ends now.
func (a *Account) look(v *View, length time.Duration, cfg *Config, owner func(*Connection) Owner) {
	m := &cfg.Match
	walk := a.Period
	v.Lighter += a.lighter
	if cfg.Anonymize && a.names == nil {
		a.names = newPseudonyms()
	}
	if cfg.Cumulative {
		walk = a.moved
	}
	if !m.owned() {
		v.Matched += len(a.open) + len(a.ended)
	} else {
		a.all(func(c *Connection) {
			c.Owner = owner(c)
			if m.owner(c.Owner) {
				v.Matched++
			}
		})
	}
	walk(func(c *Connection) {
		if m.owned() && !m.owner(c.Owner) {
			return
		}
		sent := c.sentSince(&c.mark)
		received := c.Sample.Received - c.mark.Received
		bytes := max(sent, 0) + max(received, 0)
		unsent := sent == 0 && c.stuck(transfer.Up)
		unread := received == 0 && c.stuck(transfer.Down)
		if bytes == 0 && !unsent && !unread { // it was told of, and nothing moved
			return
		}
		if float64(bytes)*8 >= m.MinBps*length.Seconds() {
			reached := a.ceilings.reached(&c.Told)
			seen := Seen{Connection: c, Signs: c.signs(), Length: length, SendBufferMax: reached.send,
				ReceiveBufferMax: reached.receive}
			c.Owner = owner(c) // a program that is known has a window of its own
			if sent > 0 || unsent {
				seen.Flows = append(seen.Flows, a.flow(c, transfer.Up))
			}
			if received > 0 || unread {
				seen.Flows = append(seen.Flows, a.flow(c, transfer.Down))
			}
			slices.SortStableFunc(seen.Flows, func(a, b Flow) int { return cmp.Compare(b.Bytes, a.Bytes) })
			if a.names != nil {
				seen.Connection = a.names.connection(c)
			}
			v.Seen = append(v.Seen, seen)
		}
	})
	v.Totals.add(a.totals)
	v.Standing += a.Len()
}

// finish puts what was seen in order, and compares connections.
func (v *View) finish() {
	v.order()
	v.shared()
	v.bothEnds()
}

// order puts the heaviest first.
func (v *View) order() {
	slices.SortStableFunc(v.Seen, func(a, b Seen) int {
		return cmp.Or(cmp.Compare(b.Bytes(), a.Bytes()), cmp.Compare(a.Cookie, b.Cookie))
	})
}

// flow is one direction of the connection since the period began.
func (c *Connection) flow(d transfer.Direction) Flow {
	f := Flow{Direction: d, Bytes: c.sentSince(&c.mark)}
	sends := d == transfer.Up
	if sends {
		f.Resent = c.Sample.RetransmittedBytes - c.mark.RetransmittedBytes
		f.RTT = c.Sample.RTT
		f.MinRTT = c.Sample.MinRTT
		f.InFlight = c.Sample.InFlight
		f.Offered = c.Sample.SendWnd
	} else {
		f.Bytes = c.Sample.Received - c.mark.Received
		f.Offered = c.Sample.ReceiveWnd
	}
	switch {
	case f.Bytes < threshold.WatchedBytes && (f.Bytes > 0 || !c.stuck(d)):
		f.Verdict = verdict.Unseen(verdict.Evidence{Code: verdict.TooLittleWatched,
			Values: verdict.Values{"bytes": float64(max(f.Bytes, 0))}})
	case len(c.window.Of) >= threshold.WatchedSamples:
		f.Verdict = c.sampled().Judge(sends)
		f.Sampled = true
	case sends:
		f.Verdict = watched.ByCounters(c.mark.sample(), &c.Sample, c.tally)
	default:
		f.Verdict = c.tally.UnseenSender()
	}
	if c.ByReadings {
		f.Verdict = c.tally.LowerConfidence(f.Verdict)
	}
	return f
}

// stuck says, of a direction in which nothing got through in the period, that something was to:
// what was sent was not acknowledged, or what had come was not read.
func (c *Connection) stuck(d transfer.Direction) bool {
	switch span := c.Sample.At - c.mark.At; {
	case span <= 0 || !c.Established:
		return false
	case d == transfer.Up:
		return c.Unacked > 0 && c.Sample.Busy-c.mark.Busy >= time.Duration(threshold.OutstandingShare*float64(span))
	}
	return c.tally.AllUnread()
}

// sampled returns the connection's window as its judge takes it.
func (c *Connection) sampled() *watched.Connection {
	return &watched.Connection{Samples: c.window, Congestion: c.Congestion, Handshake: c.Handshake,
		SendBuffer: c.SendBuffer, ReceiveBuffer: c.ReceiveBuffer, PacingBps: c.MaxPacingBps, Acked: c.Sample.Acked,
		KnownWindow: func(bytes float64) bool {
			for _, port := range append([]uint16{c.Local.Port(), c.Remote.Port()}, catalog.PortsOf(c.Owner.Program)...) {
				if p, known := catalog.ProgramAt(port, bytes); known && p.Bytes > 0 {
					return true
				}
			}
			return false
		}}
}
