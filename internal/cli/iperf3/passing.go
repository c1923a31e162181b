package iperf3

import (
	"encoding/json"
	"sync"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	face "github.com/fullpipe-net/fullpipe/internal/render/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// iperf3Passing prints a client's test while it runs: each interval when it is over, in one
// write. (iperf3 itself leaves lines for a pipe in its buffer without --forceflush.)
type iperf3Passing struct {
	f   *iperf3Flags
	cmd *cobra.Command

	mu   sync.Mutex // guards what follows, and what is printed
	doc  *face.Document
	cuts *face.Cuts
}

// open prints what is known when the streams are open.
func (p *iperf3Passing) open(a *iperf3.Account, asked face.Asked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doc = face.Begin(a, asked)
	p.cuts = face.NewCuts(a, p.f.every(), false)
	p.f.open(p.cmd, p.doc)
}

// add takes what moved and prints the intervals that are over.
func (p *iperf3Passing) add(i transfer.Interval) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.cuts.Told()
	p.f.pass(p.cmd, p.doc, first, p.cuts.Add(i))
}

// told is how many intervals were printed, after the test.
func (p *iperf3Passing) told() int {
	if p.cuts == nil {
		return 0
	}
	return p.cuts.Told()
}

// open prints what is known when the streams are open.
func (f *iperf3Flags) open(cmd *cobra.Command, doc *face.Document) {
	switch {
	case f.stream:
		f.event(cmd, "start", doc.Start, nil)
	case !console.WantsJSON(cmd):
		f.write(cmd, func(t face.Text) { t.Opening(doc) })
	}
}

// pass prints some of a test's intervals, of which the first is the nth.
func (f *iperf3Flags) pass(cmd *cobra.Command, doc *face.Document, n int, some []face.Interval) {
	switch {
	case len(some) == 0:
	case f.stream:
		for _, one := range some {
			f.event(cmd, "interval", one, nil)
		}
	case !console.WantsJSON(cmd):
		f.write(cmd, func(t face.Text) { t.Intervals(doc, n, some) })
	}
}

// iperf3Event is a line of --json-stream, in the order of iperf3's keys.
type iperf3Event struct {
	Event    string         `json:"event"`
	Data     any            `json:"data"`
	Fullpipe *face.Fullpipe `json:"fullpipe,omitempty"` // with the end
}

// event prints a line of --json-stream.
func (f *iperf3Flags) event(cmd *cobra.Command, name string, data any, more *face.Fullpipe) error {
	return json.NewEncoder(cmd.OutOrStdout()).Encode(iperf3Event{name, data, more})
}
