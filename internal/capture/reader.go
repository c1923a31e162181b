package capture

import (
	"context"
	"errors"
	"io"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// reader reads the files of a capture, one after the other, into batches, and keeps the
// account of what it reads. One goroutine at a time has it.
type reader struct {
	ctx    context.Context
	cfg    Config
	files  []*File // still to be read
	a      *Analysis
	tally  *tally // of the present file
	before int64  // packets of the files before it
	look   int64  // packets at the last look at ctx
	order  flow.Order
	shared *sightings // nil for a single file
	packet Packet     // the present one, where it is not plain
	err    error
}

func newReader(ctx context.Context, cfg Config, files []*File) *reader {
	r := &reader{ctx: ctx, cfg: cfg, files: files, a: &Analysis{UnknownLinks: map[LinkType]int64{}}}
	if len(files) > 1 {
		r.shared = newSightings()
	}
	r.begin()
	return r
}

// begin begins the account of the next file.
func (r *reader) begin() {
	r.before = r.a.Packets
	r.look = r.a.Packets
	if r.shared != nil && len(r.files) > 0 {
		r.shared.open(r.files[0].name)
	}
	if r.cfg.Live != nil {
		r.tally = newTally(r.cfg.Flow.Wanted)
	}
}

// end ends that of the present one.
func (r *reader) end(err error) {
	f := r.files[0]
	r.files = r.files[1:]
	summary := FileSummary{Name: f.name, Packets: r.a.Packets - r.before}
	r.err = summary.ended(err)
	r.a.Lost += f.lost
	r.a.Files = append(r.a.Files, summary)
	r.begin()
}

// fill reads until b is full or there is nothing more to read, and puts the segments in order. rest are those without
// a final place yet, which the next batch begins with. It returns false at the end.
func (r *reader) fill(b *batch) (rest []flow.Segment, more bool) {
	for b.n < len(b.segments) && r.err == nil && len(r.files) > 0 {
		from := b.n
		if f := r.files[0]; f.plain != nil && f.first == nil {
			n := f.plain(b.segments[b.n:])
			for i := range b.segments[b.n : b.n+n] {
				b.segments[b.n+i].Number = uint32(r.a.Packets - r.before + int64(i) + 1)
			}
			b.n += n
			r.a.Kinds[TCP] += int64(n)
			r.a.Packets += int64(n)
		}
		r.shared.add(b.segments[from:b.n])
		from = b.n
		if b.n < len(b.segments) {
			r.one(b)
		}
		r.shared.add(b.segments[from:b.n])
		r.lookUp()
	}
	more = r.err == nil && len(r.files) > 0
	n := b.n
	b.n = r.order.Settle(b.segments[:n], !more)
	return b.segments[b.n:n], more
}

// one reads the next packet of any kind.
func (r *reader) one(b *batch) {
	p := &r.packet
	if err := r.files[0].Next(p); err != nil {
		r.end(err)
		return
	}
	s := &b.segments[b.n]
	kind := Decode(p, s)
	r.a.Kinds[kind]++
	if kind == UnknownLink {
		r.a.UnknownLinks[p.Link]++
	}
	if kind == TCP || kind == TooBig {
		s.Number = uint32(r.a.Packets - r.before + 1)
		b.n++
	}
	r.a.Packets++
	if r.tally != nil {
		if kind == TCP {
			r.tally.add(s)
		}
		if r.tally.due(p.At) {
			r.cfg.Live(r.tally.traffic(r.a.Packets-r.before, p.At))
		}
	}
}

// lookUp reports the progress now and then, and ends when the context does.
func (r *reader) lookUp() {
	if r.a.Packets-r.look < 1<<16 {
		return
	}
	r.look = r.a.Packets
	if r.cfg.Progress != nil {
		r.cfg.Progress(r.a.Packets)
	}
	if err := r.ctx.Err(); err != nil {
		r.end(err)
	}
}

// ended keeps the damage that ended a file; any other error than its end is the caller's.
func (s *FileSummary) ended(err error) error {
	if errors.Is(err, io.EOF) || errors.As(err, &s.Damage) {
		return nil
	}
	return err
}
