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

// livePrinter prints a client's intervals while the test runs, each in one write. (Without --forceflush iperf3
// buffers lines for a pipe.)
type livePrinter struct {
	f   *flags
	cmd *cobra.Command

	mu   sync.Mutex // guards the fields below and the output
	doc  *face.Document
	cuts *face.Intervals
}

// open prints the lines known when the streams are open.
func (p *livePrinter) open(a *iperf3.TestResult, asked face.Options) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doc = face.Begin(a, asked)
	p.cuts = face.NewIntervals(a, p.f.reportInterval(), false)
	p.f.open(p.cmd, p.doc)
}

// add adds moved data and prints the completed intervals.
func (p *livePrinter) add(i transfer.Interval) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.cuts.Completed()
	p.f.printIntervals(p.cmd, p.doc, first, p.cuts.Add(i))
}

// printed returns the number of printed intervals after the test.
func (p *livePrinter) printed() int {
	if p.cuts == nil {
		return 0
	}
	return p.cuts.Completed()
}

// open prints the lines known when the streams are open.
func (f *flags) open(cmd *cobra.Command, doc *face.Document) {
	switch {
	case f.stream:
		f.event(cmd, "start", doc.Start, nil)
	case !console.WantsJSON(cmd):
		f.write(cmd, func(t face.Text) { t.Opening(doc) })
	}
}

// printIntervals prints some intervals. The first one has index n.
func (f *flags) printIntervals(cmd *cobra.Command, doc *face.Document, n int, some []face.Interval) {
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

// event is a line of --json-stream, in the order of iperf3's keys.
type event struct {
	Event    string         `json:"event"`
	Data     any            `json:"data"`
	Fullpipe *face.Fullpipe `json:"fullpipe,omitempty"` // only with the end
}

// event prints a line of --json-stream.
func (f *flags) event(cmd *cobra.Command, name string, data any, more *face.Fullpipe) error {
	return json.NewEncoder(cmd.OutOrStdout()).Encode(event{name, data, more})
}
