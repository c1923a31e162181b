package report

import (
	"cmp"
	"errors"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/bpf"
	"github.com/fullpipe-net/fullpipe/internal/lost"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Losses are the drops of one direction of a transfer at its two ends.
type Losses struct {
	Sender, Receiver *transfer.Losses // nil: not watched
	MSS              int              // 0: transfer.DefaultMSS
	// Retransmitted has the sender's retransmitted segments by its own count; nil: not known.
	Retransmitted *int64
	// Spurious has the retransmitted segments that had arrived before; nil: not known.
	Spurious *int64
	// SenderCounters and ReceiverCounters moved during the transfer; nil: none, or not known.
	SenderCounters, ReceiverCounters []transfer.DropCounter
	Moves                            []transfer.Move // the sender's retransmissions by time; nil: not known
	// AddressesChange reports that drops behind a NAT or proxy cannot be seen.
	AddressesChange bool
}

// lossesOf returns the drops of a transfer.
func lossesOf(r *transfer.Result, d *record.Direction) Losses {
	l := Losses{MSS: d.MSSBytes, Retransmitted: d.RetransmittedSegment, AddressesChange: r.AddressesChange()}
	if e := r.Sender(); e != nil {
		l.Sender = e.Losses
		l.SenderCounters = e.DropCounters
		l.Moves = e.Retransmissions()
		if n, known := e.Spurious(); known {
			l.Spurious = &n
		}
	}
	if e := r.Receiver(); e != nil {
		l.Receiver = e.Losses
		l.ReceiverCounters = e.DropCounters
	}
	return l
}

// LostAt describes where the watched ends dropped packets, the place of most bytes first. The
// retransmissions that their drops do not explain were lost elsewhere, or had arrived before.
func (l Losses) LostAt() (all []record.LostAt) {
	if l.Sender == nil && l.Receiver == nil {
		return l.byCounters(record.OrZero(l.Retransmitted) - record.OrZero(l.Spurious))
	}
	if l.Sender != nil && l.Receiver != nil && l.Receiver.Retransmits {
		l.Receiver = nil // both ends are one host, which reports the same twice
	}
	sender := cmp.Or(l.Sender, &transfer.Losses{})
	receiver := cmp.Or(l.Receiver, &transfer.Losses{})
	mss := int64(cmp.Or(l.MSS, transfer.DefaultMSS))
	segmentsOf := func(bytes int64) int64 { return (bytes + mss - 1) / mss }
	// Under a flood of drops fewer retransmissions are seen than the sender counts.
	exact := sender.Retransmits || receiver.Retransmits
	counted := max(sender.Bytes, receiver.Bytes)
	segments := max(sender.Segments, receiver.Segments)
	total := counted
	if l.Retransmitted != nil {
		counted = max(counted, *l.Retransmitted*mss)
	}
	if !exact {
		total = counted
		segments = segmentsOf(total)
	}
	watched := l.watched()
	add := func(one record.LostAt) {
		one.Watched = cmp.Or(one.Watched, watched)
		one.NamespaceOnly = sender.NamespaceOnly || receiver.NamespaceOnly
		one.AddressesChange = l.AddressesChange
		one.Share = shareOf(one.Bytes, counted)
		total -= one.Bytes
		segments -= one.Segments
		all = append(all, one)
	}
	for _, p := range sender.Places {
		add(place(p, record.SenderHost, l.SenderCounters))
	}
	for _, p := range receiver.Places {
		one := place(p, record.ReceiverHost, l.ReceiverCounters)
		if !receiver.Retransmits { // its drops are matched by bytes: all of them are retransmitted
			one.Bytes = p.Dropped
			one.Segments = segmentsOf(p.Dropped)
		}
		add(one)
	}
	slices.SortStableFunc(all, func(a, b record.LostAt) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.DroppedBytes, a.DroppedBytes))
	})
	if total <= 0 || sender.Incomplete || receiver.Incomplete || !exact && l.Retransmitted == nil {
		return all
	}
	if arrived := min(record.OrZero(l.Spurious), segments); arrived > 0 {
		add(record.LostAt{Place: record.NotLost, Segments: arrived, Bytes: min(arrived*mss, total)})
	}
	if watched != record.BothHosts && segments > 0 {
		for _, one := range l.byCounters(segments) { // of the end that was not watched
			add(one)
		}
	}
	if total > 0 && segments > 0 {
		rest := record.LostAt{Place: record.Elsewhere, Segments: segments, Bytes: total}
		earned := watched == record.BothHosts && l.Spurious != nil && !l.AddressesChange &&
			!sender.NamespaceOnly && !receiver.NamespaceOnly
		if earned {
			rest.Place = record.BetweenHosts
		}
		add(rest)
	}
	return all
}

func (l Losses) watched() string {
	switch {
	case l.Receiver == nil:
		return record.SenderHost
	case l.Sender == nil:
		return record.ReceiverHost
	}
	return record.BothHosts
}

// byCounters returns the place of segments by the counters of the ends that were not watched, if
// they know it. Absent rows are not known.
func (l Losses) byCounters(segments int64) []record.LostAt {
	mss := int64(cmp.Or(l.MSS, transfer.DefaultMSS))
	senders := l.SenderCounters
	receivers := l.ReceiverCounters
	if l.Sender != nil {
		senders = nil
	}
	if l.Receiver != nil {
		receivers = nil
	}
	losses := lost.Lost{Segments: segments, MSS: mss, Headers: lost.HeadersTCP, Moves: l.Moves}
	one, ok := explained(losses, senders, receivers)
	if !ok {
		return nil
	}
	one.Watched = one.Side
	one.AddressesChange = l.AddressesChange
	if l.Retransmitted != nil {
		one.Share = shareOf(one.Segments, *l.Retransmitted)
	}
	return []record.LostAt{one}
}

// explained returns the only place whose counters explain losses.
func explained(losses lost.Lost, senders, receivers []transfer.DropCounter) (one record.LostAt, ok bool) {
	senders = places(senders)
	receivers = places(receivers)
	found, ok := losses.Explain(senders, receivers)
	if !ok {
		return one, false
	}
	one = record.LostAt{Confidence: verdict.Low, Side: record.ReceiverHost, Segments: found.Segments,
		Bytes: found.Segments * losses.MSS}
	all := receivers
	if found.Sender {
		one.Side = record.SenderHost
		all = senders
	}
	if found.Exact {
		one.Confidence = verdict.Medium
	}
	c := &all[found.Index]
	one.Place = string(knownKind(found.Place))
	one.Counter = c.Name
	one.Rule = c.Rule
	one.Dev = c.Device
	one.Qdisc = c.Qdisc
	one.DroppedPackets = c.Packets
	one.DroppedBytes = c.Bytes
	return one, true
}

// places returns the counters of places. The others are hints.
func places(all []transfer.DropCounter) []transfer.DropCounter {
	return slices.DeleteFunc(slices.Clone(all), func(c transfer.DropCounter) bool {
		return c.Place == string(lost.AllowanceExceeded)
	})
}

// knownKind returns a far end's kind of place, which may be newer.
func knownKind(place string) lost.Kind {
	if slices.Contains(lost.Kinds(), lost.Kind(place)) {
		return lost.Kind(place)
	}
	return lost.Other
}

// lossNotes returns a hint for each counter of packets beyond a cloud's allowance, and a note about
// the missing privilege for a lossy direction without places of loss.
func lossNotes(r *transfer.Result, d *record.Direction) (notes []string) {
	if r.Near != nil && r.Near.DropsNotPermitted && d.LostAt == nil && record.OrZero(d.RetransmittedSegment) > 0 {
		notes = append(notes, noPlacesOfLoss().Text)
	}
	for _, e := range []*transfer.End{r.Near, r.Far} {
		if e == nil {
			continue
		}
		for _, c := range e.DropCounters {
			if c.Place == string(lost.AllowanceExceeded) {
				notes = append(notes, text.AllowanceNote(c, e == r.Far))
			}
		}
	}
	return notes
}

// ruleOf returns the only rule of nftables whose counter moved.
func ruleOf(counters []transfer.DropCounter) (rule string) {
	for i := range counters {
		if counters[i].Rule == "" {
			continue
		}
		if rule != "" {
			return ""
		}
		rule = counters[i].Rule
	}
	return rule
}

func place(p transfer.LossPlace, side string, counters []transfer.DropCounter) record.LostAt {
	kind := cmp.Or(lost.KindOf(p.Reason), lost.Other) // a far end's kernel may be newer
	rule := ""
	if kind == lost.Firewall {
		rule = ruleOf(counters)
	}
	return record.LostAt{Confidence: verdict.High, Rule: rule, Place: string(kind), Side: side, Reason: p.Reason,
		Dev: p.Device, Qdisc: p.Qdisc, Forwarded: p.Forwarded, Segments: p.Segments, Bytes: p.Bytes,
		DroppedPackets: p.Packets, DroppedBytes: p.Dropped}
}

// NoPlacesOfLoss returns the note about an error of drops.Open, if it is one of privileges.
func NoPlacesOfLoss(err error) (note verdict.Note, ok bool) {
	if !errors.As(err, new(*bpf.NotPermittedError)) {
		return verdict.Note{}, false
	}
	return noPlacesOfLoss(), true
}

func noPlacesOfLoss() verdict.Note {
	return text.Notes([]verdict.Note{{Code: verdict.NoPlacesOfLoss}})[0]
}

// shareOf returns a share of at most 1, or nil of nothing.
func shareOf(part, whole int64) *float64 {
	if whole <= 0 {
		return nil
	}
	return new(min(float64(part)/float64(whole), 1))
}
