package probe

import (
	"context"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Part is one end's part in a transfer whose connections another protocol opened.
type Part struct {
	Send    bool
	Spec    transfer.Spec // its Bytes bound what is written, or what is read
	Streams []*socket.Stream
	// Preface is how many bytes this end had written to each stream before.
	Preface int64
	// Each, when not nil, is told what moved, at least Every (0: 100 ms) apart.
	Every time.Duration
	Each  func(transfer.Interval)
}

// CarryOut moves the payload until the Spec's time or bytes are used up or ctx ends,
// and answers what this end saw, also with an error. The streams stay open in both
// directions: the other protocol says when the transfer is over.
func (p Part) CarryOut(ctx context.Context) (*transfer.End, error) {
	return part{send: p.Send, spec: p.Spec, streams: p.Streams, preface: p.Preface, every: p.Every, each: p.Each,
		keepOpen: true}.carryOut(ctx)
}
