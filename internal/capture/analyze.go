package capture

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/units"
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
	Connections []*flow.Connection // in the order of their beginnings
	Packets     int64
	Segments    int64      // TCP segments
	Duplicates  int64      // captured twice
	Dropped     int64      // connections that made room for others with more bytes
	Unwanted    int64      // segments of connections that were not asked for
	Lost        int64      // packets that the capturing program counted as dropped
	HeadersCut  int64      // TCP packets that were captured too short for their headers
	Order       flow.Order // corrections of the records' order and stamps
	// Warnings are sentences about damage and packets that could not be read, with their number.
	Warnings []string
	Files    []FileSummary
}

// FileSummary is what was read of one file.
type FileSummary struct {
	Name    string  `json:"name"`
	Packets int64   `json:"packets"`
	Damage  *Damage `json:"-"`
}

// Analyze reads files, which are the parts of one capture in any order, and follows the connections in them. A file
// that cannot be read at all is an error; damage within one is a warning. When ctx ends, Analyze returns the
// connections until then with its error.
func Analyze(ctx context.Context, cfg Config, files ...*File) (*Analysis, error) {
	if len(files) > 1 {
		slices.SortStableFunc(files, func(x, y *File) int { return cmp.Compare(x.begins(), y.begins()) })
	}
	r := newReader(ctx, cfg, files)
	tables := follow(r, cfg)
	a := r.a
	a.Order = r.order
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
	a.HeadersCut = r.counts.of[Cut]
	a.warn(&r.counts)
	return a, r.err
}

// kinds counts what packets were found to be.
type kinds struct {
	of      [UnknownLink + 1]int64
	unknown map[LinkType]int64 // link types
}

func (a *Analysis) warn(counts *kinds) {
	for kind, text := range map[Kind]string{
		Cut:       "%d TCP packets were captured too short for their headers; capture at least 96 bytes (tcpdump -s 128)",
		Fragment:  "%d packets are later pieces of TCP segments that IP took apart; their bytes count as not captured",
		Malformed: "%d packets have lengths that contradict each other and were passed over",
	} {
		if n := counts.of[kind]; n > 0 {
			a.Warnings = append(a.Warnings, fmt.Sprintf(text, n))
		}
	}
	const named = 3
	for i, link := range slices.SortedFunc(maps.Keys(counts.unknown), func(x, y LinkType) int {
		return cmp.Or(cmp.Compare(counts.unknown[y], counts.unknown[x]), cmp.Compare(x, y))
	}) {
		if i == named {
			a.Warnings = append(a.Warnings, fmt.Sprintf("%d more link types are not known here", len(counts.unknown)-named))
			break
		}
		a.Warnings = append(a.Warnings, fmt.Sprintf("%d packets are of link type %d, which is not known here "+
			"(tcpdump.org/linktypes.html names it)",
			counts.unknown[link], link))
	}
	slices.Sort(a.Warnings)
	if a.Lost > 0 {
		a.Warnings = append(a.Warnings, fmt.Sprintf("%d packets came faster than they were captured and are missing", a.Lost))
	}
	a.Warnings = append(a.Warnings, orderNotes(&a.Order)...)
	for _, f := range a.Files {
		if f.Damage != nil {
			a.Warnings = append(a.Warnings, f.Damage.Error())
		}
	}
}

// orderNotes returns sentences about records out of order and a clock that was set.
func orderNotes(o *flow.Order) (notes []string) {
	upTo := func(ns int64, more string) string { // nothing where there is no such figure
		if ns <= 0 {
			return ""
		}
		return ", by up to " + units.Time(time.Duration(ns)) + more
	}
	if o.Late > 0 {
		notes = append(notes, fmt.Sprintf("%d records were behind later ones in the file%s and were sorted by their times",
			o.Late, upTo(o.LateMost, ",")))
	}
	if o.Unplaced > 0 {
		notes = append(notes, fmt.Sprintf("%d of them came too late for that; sort the capture first (reordercap IN OUT)",
			o.Unplaced))
	}
	if o.Misstamped > 0 {
		notes = append(notes, fmt.Sprintf("%d single records have an earlier time than the record that their sender sent "+
			"before; they count as sent right after it", o.Misstamped))
	}
	if o.Steps > 0 {
		way := "forward"
		if o.StepMost < 0 {
			way = "back"
		}
		notes = append(notes, fmt.Sprintf("the capturing host's clock was set %d times%s; times run on as if it had not been",
			o.Steps, upTo(max(o.StepMost, -o.StepMost), " "+way)))
	}
	return notes
}
