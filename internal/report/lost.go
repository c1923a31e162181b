package report

import (
	"cmp"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/drops"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// LostAt describes where this host dropped packets of one direction of a transfer, the place of
// most bytes first. Where the sender is this host, the retransmissions that its drops do not
// explain were lost elsewhere. retransmitted has the sender's retransmitted bytes by its own count,
// nil if they are not known.
func LostAt(c drops.Counts, d transfer.Direction, mss int, retransmitted *int64) (all []record.LostAt) {
	side := record.ReceiverHost
	if d == transfer.Up {
		side = record.SenderHost
	}
	total := c.Bytes
	if !c.Retransmits && retransmitted != nil {
		total = *retransmitted
	}
	// Under a flood of drops fewer retransmissions are seen than the sender counts.
	counted := total
	if retransmitted != nil {
		counted = max(total, *retransmitted)
	}
	mss = cmp.Or(mss, transfer.DefaultMSS)
	var segments, bytes int64
	for _, p := range c.Places {
		one := record.LostAt{Place: string(p.Kind), Side: side, Reason: p.Reason, Dev: p.Device, Qdisc: p.Qdisc,
			Forwarded: p.Forwarded, Segments: p.Segments, Bytes: p.Bytes, DroppedPackets: p.Packets, DroppedBytes: p.Dropped,
			Watched: side, NamespaceOnly: c.NamespaceOnly}
		if d == transfer.Down && !c.Retransmits {
			one.Bytes = p.Dropped
			one.Segments = (p.Dropped + int64(mss) - 1) / int64(mss)
		}
		one.Share = shareOf(one.Bytes, counted)
		segments += one.Segments
		bytes += one.Bytes
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b record.LostAt) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.DroppedBytes, a.DroppedBytes))
	})
	if left := total - bytes; left > 0 && c.Missed == 0 && (c.Retransmits || len(c.Places) == 0) {
		one := record.LostAt{Place: record.Elsewhere, Segments: c.Segments - segments, Bytes: left,
			Share: shareOf(left, counted), Watched: side, NamespaceOnly: c.NamespaceOnly}
		if !c.Retransmits {
			one.Segments = (left + int64(mss) - 1) / int64(mss)
		}
		all = append(all, one)
	}
	return all
}

// NoPlacesOfLoss returns the note of a process that may not load eBPF programs.
func NoPlacesOfLoss() verdict.Note {
	return text.Notes([]verdict.Note{{Code: verdict.NoPlacesOfLoss}})[0]
}

// shareOf returns a share of at most 1, or nil of nothing.
func shareOf(part, whole int64) *float64 {
	if whole <= 0 {
		return nil
	}
	return new(min(float64(part)/float64(whole), 1))
}
