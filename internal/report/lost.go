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
	// AddressesChange reports that drops behind a NAT or proxy cannot be seen.
	AddressesChange bool
}

// lossesOf returns the drops of a transfer.
func lossesOf(r *transfer.Result, d *record.Direction) Losses {
	l := Losses{MSS: d.MSSBytes, Retransmitted: d.RetransmittedSegment, AddressesChange: r.AddressesChange()}
	if e := r.Sender(); e != nil {
		l.Sender = e.Losses
		if n, known := e.Spurious(); known {
			l.Spurious = &n
		}
	}
	if e := r.Receiver(); e != nil {
		l.Receiver = e.Losses
	}
	return l
}

// LostAt describes where the watched ends dropped packets, the place of most bytes first. The
// retransmissions that their drops do not explain were lost elsewhere, or had arrived before.
func (l Losses) LostAt() (all []record.LostAt) {
	if l.Sender == nil && l.Receiver == nil {
		return nil
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
		one.Watched = watched
		one.NamespaceOnly = sender.NamespaceOnly || receiver.NamespaceOnly
		one.AddressesChange = l.AddressesChange
		one.Share = shareOf(one.Bytes, counted)
		total -= one.Bytes
		segments -= one.Segments
		all = append(all, one)
	}
	for _, p := range sender.Places {
		add(place(p, record.SenderHost))
	}
	for _, p := range receiver.Places {
		one := place(p, record.ReceiverHost)
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

func place(p transfer.LossPlace, side string) record.LostAt {
	kind := cmp.Or(lost.KindOf(p.Reason), lost.Other) // a far end's kernel may be newer
	return record.LostAt{Place: string(kind), Side: side, Reason: p.Reason, Dev: p.Device, Qdisc: p.Qdisc,
		Forwarded: p.Forwarded, Segments: p.Segments, Bytes: p.Bytes, DroppedPackets: p.Packets, DroppedBytes: p.Dropped}
}

// NoPlacesOfLoss returns the note about an error of drops.Open, if it is one of privileges.
func NoPlacesOfLoss(err error) (note verdict.Note, ok bool) {
	if !errors.As(err, new(*bpf.NotPermittedError)) {
		return verdict.Note{}, false
	}
	return text.Notes([]verdict.Note{{Code: verdict.NoPlacesOfLoss}})[0], true
}

// shareOf returns a share of at most 1, or nil of nothing.
func shareOf(part, whole int64) *float64 {
	if whole <= 0 {
		return nil
	}
	return new(min(float64(part)/float64(whole), 1))
}
