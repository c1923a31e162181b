package capture

import (
	"cmp"
	"context"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// From a file to its connections. The functions that do a step are in the order of the steps.
//
//  1. NewFile recognises the format: pcap, pcapng, snoop or ERF, compressed or not. Listen opens an interface.
//  2. reader.fill reads a batch of packets: plain ones with decodePlain straight from the buffer, others with
//     File.Next and Decode, which passes link layers and tunnels to the TCP header.
//  3. flow.Order.Settle puts the segments of the batch into the order of their times and corrects steps of the clock.
//     The last few wait for the next batch, since late records may belong before them.
//  4. batch.share divides the settled segments among the workers by a hash of their connection.
//  5. worker.add gives each segment to the worker's flow.Table, which finds its connection, drops duplicates and
//     advances the timelines of both directions.
//  6. Table.Finish closes the timelines. Analyze joins the tables, and warns of damage and unreadable packets.
//
// One goroutine at a time reads: a worker without work takes the turn (crew.turn), reads a batch, and hands it out.
// With one worker followAlone does all steps in one loop. The result does not depend on the number of workers.
//
// Then package diagnose judges each direction with timeline.Judge, and adds the trust in the capture.

// Config says what Analyze reads and keeps.
type Config struct {
	// Workers is how many goroutines follow connections, each its share of them; they read
	// by turns. 0 is as many as there are processors.
	Workers int
	Flow    flow.Config
	// Progress, when not nil, is called now and then with the packets read so far.
	Progress func(packets int64)
	// Live, when not nil, is called once a second of packets with the traffic until then.
	Live func(Traffic)
}

// Analysis is what captures hold.
type Analysis struct {
	Connections  []*flow.Connection // in the order of their beginnings
	Packets      int64
	Segments     int64                  // TCP segments
	Duplicates   int64                  // captured twice
	Dropped      int64                  // connections that made room for others with more bytes
	Unwanted     int64                  // segments of connections that were not asked for
	Lost         int64                  // packets that the capturing program counted as dropped
	Order        flow.Order             // corrections of the records' order and stamps
	Kinds        [UnknownLink + 1]int64 // packets by Kind
	UnknownLinks map[LinkType]int64     // packets by link types that are not known here
	Files        []FileSummary
	Shared       []Shared // pairs of files that hold the same segments
}

// FileSummary is what was read of one file.
type FileSummary struct {
	Name    string  `json:"name"`
	Packets int64   `json:"packets"`
	Damage  *Damage `json:"-"`
}

// Analyze reads files, which are the parts of one capture in any order, and follows the connections in them. Where they
// are captures at several places, its figures are of no use, and Shared is not empty. A file
// that cannot be read at all is an error; damage within one is in its FileSummary. When ctx ends, Analyze returns the
// connections until then with its error.
func Analyze(ctx context.Context, cfg Config, files ...*File) (*Analysis, error) {
	if len(files) > 1 {
		slices.SortStableFunc(files, func(x, y *File) int { return cmp.Compare(x.begins(), y.begins()) })
	}
	r := newReader(ctx, cfg, files)
	tables := follow(r, cfg)
	a := r.a
	a.Order = r.order
	a.Shared = r.shared.shared()
	for _, t := range tables {
		a.Connections = append(a.Connections, t.Finish()...)
		a.Segments += t.Segments
		a.Duplicates += t.Duplicates
		a.Dropped += t.Dropped
		a.Unwanted += t.Unwanted
	}
	slices.SortStableFunc(a.Connections, func(x, y *flow.Connection) int {
		return int(min(max(x.Started-y.Started, -1), 1))
	})
	return a, r.err
}
