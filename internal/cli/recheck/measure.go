package recheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/farend"
	"github.com/fullpipe-net/fullpipe/internal/cli/listener"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/cli/settings"
	"github.com/fullpipe-net/fullpipe/internal/config"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/recheck/runner"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// rechecker runs the tests of one command, stores the results and reports events.
type rechecker struct {
	cmd    *cobra.Command
	f      *flags
	fars   map[string]*recheckFar // by the runner's name
	dir    string                 // of the history
	hostID string
	// accounts are the day's tests, by id.
	accounts map[string]account
	doc      record.Recheck
	reported bool // an event other than change.Back
	failed   bool
	unmarked bool // the note about marks that cannot be written was printed
	*listener.Exporter
	metrics *recheck.Metrics // the exporter's
}

func newRechecker(cmd *cobra.Command, f *flags, fars []*recheckFar) (*rechecker, error) {
	if _, in, _ := lab.Around(); in && !console.IsSet(cmd, "record") {
		return nil, exit.Usage("--record", "results of a lab are stored only on request", "--record")
	}
	m := recheck.NewMetrics()
	k := &rechecker{cmd: cmd, f: f, fars: map[string]*recheckFar{}, doc: record.Recheck{Header: present.Header(cmd)},
		Exporter: &listener.Exporter{Metrics: m}, metrics: m, accounts: map[string]account{}}
	var err error
	if k.dir, err = store.Dir(); err != nil {
		return nil, err
	}
	if k.hostID, err = store.HostID(k.dir); err != nil {
		return nil, fmt.Errorf("this host's name in records: %w", err)
	}
	for _, far := range fars {
		far.flags.Notes = console.Progress(cmd)
		far.flags.Once = true // each visit is one, at times that go with whoever runs the server
		far.public = publicServer(cmd.Context(), far.address, f.own)
		far.series = seriesOfFar(k.hostID, far, f.time)
		k.fars[far.address] = far
	}
	return k, nil
}

// seriesOfFar returns the key of the series that tests of a far end make. A shorter transfer, or one that takes another
// way out, is another series.
func seriesOfFar(hostID string, far *recheckFar, length time.Duration) string {
	p := far.flags.Path("recheck", hostID, far.address)
	p.Others = "time=" + length.String() + " direction=" + far.flags.Direction + " bind=" + far.flags.Bind
	return p.Key()
}

// Series returns the key of the series that recheck of a far end, with the defaults of the configuration, makes.
func Series(ctx context.Context, file *config.File, hostID, name string) (string, error) {
	cmd, f := command()
	cmd.SetContext(ctx)
	args, err := settings.Apply(cmd, file, []string{name})
	if err != nil {
		return "", err
	}
	fars, err := f.resolve(cmd, file, args)
	if err != nil {
		return "", err
	}
	return seriesOfFar(hostID, fars[0], f.time), nil
}

// setupTimeout is the time that a test may take besides its transfers: to connect, to receive the far end's result.
const setupTimeout = 20 * time.Second

// errOverBudget cuts a test short.
var errOverBudget = errors.New("it took more than the day's budget of bytes has left")

// test measures a far end and stores the result.
func (k *rechecker) test(ctx context.Context, o runner.Order) (*recheck.Result, error) {
	far := k.fars[o.Peer]
	sends := o.Directions
	if sends == nil {
		sends = far.sends
	}
	begin := time.Now()
	id := history.NewID(o.At)
	charged, err := k.charge(o, id, time.Duration(len(sends))*k.f.time)
	if err != nil {
		return nil, fmt.Errorf("the test cannot be charged to the day's budgets: %w", err)
	}
	ctx, cancel := context.WithTimeout(history.WithSession(ctx), time.Duration(len(sends))*(k.f.time+setupTimeout))
	defer cancel()
	doc := &record.Measure{Header: present.Header(k.cmd), Peer: lab.PeerName(o.Peer)}
	doc.Schema = "fullpipe/measure/v1"
	doc.StartedAt = o.At.UTC()
	err = k.transfers(ctx, far, sends, o.MaxBytes, doc, charged)
	if err != nil && len(doc.Directions) == 0 {
		charged.settle()
		return nil, err
	}
	if err != nil {
		failure, _ := exit.Describe(k.cmd.Context(), err)
		doc.Error = &failure
	}
	k.seal(ctx, far, doc, o, id, time.Since(begin))
	result := recheck.ResultOf(doc)
	k.accounts[doc.ID] = account{o.At, result.Cost}
	kept := k.keep(doc)
	if c, ok := k.cmd.Context().Value(clockKey{}).(Clock); ok && c.Kept != nil {
		c.Kept()
	}
	if kept != nil {
		charged.file.File().Close() // other processes count it by the charge
		return &result, errors.Join(err, fmt.Errorf("not kept in the history: %w", kept))
	}
	charged.settle()
	return &result, err
}

// transfers carries out the transfers of one test, one after the other.
func (k *rechecker) transfers(ctx context.Context, far *recheckFar, sends []string, most int64,
	doc *record.Measure, charged *charge) error {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	peer, err := far.flags.Open(ctx, far.address)
	if err != nil {
		return err
	}
	defer peer.Close()
	losses := farend.WatchLosses()
	defer losses.Close()
	watched := losses.Peer(peer)
	var moved int64
	for _, direction := range sends {
		spec := transfer.Spec{Direction: transfer.Direction(direction), Time: k.f.time}
		var intervals []transfer.Interval
		result, err := transfer.Run(ctx, watched, spec, func(i transfer.Interval) {
			intervals = append(intervals, i)
			present.Interval(k.cmd, spec.Direction, intervals)
			moved += i.Bytes
			charged.moved(moved, i.Bytes)
			if most > 0 && moved > most {
				cut(errOverBudget)
			}
		})
		if result != nil {
			doc.Near = report.Host(result.Near)
			doc.Far = report.Host(result.Far)
			doc.Directions = append(doc.Directions, report.Direction(result, live.Judge(result), nil))
		}
		if cause := context.Cause(ctx); err != nil && errors.Is(cause, errOverBudget) {
			return cause
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// seal adds the envelope of a measured document.
func (k *rechecker) seal(ctx context.Context, far *recheckFar, doc *record.Measure, o runner.Order,
	id string, took time.Duration) {
	s := history.SessionOf(ctx)
	e := history.NewEnvelope(doc, o.At, took)
	e.ID = id
	e.TestID = s.TestID
	e.FarClock = s.FarClock()
	e.HostID = k.hostID
	e.PathKey = far.series
	e.Origin = record.Scheduled
	doc.Envelope = e
	if o.Retest {
		doc.Origin = record.Retest
	}
}

// keep adds a result to the history.
func (k *rechecker) keep(doc *record.Measure) error {
	encoded, err := record.Encode(doc)
	if err != nil {
		return err
	}
	ctx, cancel := history.KeepContext(k.cmd)
	defer cancel()
	s, err := history.Open(ctx, k.cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	err = s.Keep(ctx, encoded, nil)
	if history.IsWaiting(err) {
		history.NoteWaiting(k.cmd, err)
		return nil
	}
	if err == nil {
		err = history.Trim(ctx, k.cmd, s)
	}
	return err
}

// report prints a visit, counts it and passes its events on.
func (k *rechecker) report(ctx context.Context, v recheck.Visit) {
	var failure *record.Failure
	if v.Err != nil {
		f, _ := exit.Describe(k.cmd.Context(), v.Err)
		failure = &f
		k.failed = true
	}
	var events []record.RecheckEvent
	for i := range v.Events {
		e := &v.Events[i]
		k.reported = k.reported || e.Event != changepoint.Back
		events = append(events, report.RecheckEvent(*e, v.Peer, k.planFor(&v, e)))
	}
	k.Update(func() { k.metrics.Add(v) })
	if !v.Late {
		k.doc.Tests = append(k.doc.Tests, report.RecheckTest(&v, failure))
	}
	k.doc.Events = slices.Concat(k.doc.Events, events)
	if k.f.every != 0 || !console.WantsJSON(k.cmd) || console.WantsStream(k.cmd) {
		if err := k.print(); err != nil {
			console.Note(k.cmd, "standard output: %v", err)
		}
	}
	// An interrupt ends notifications soon. The next process reports the events that are left.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(k.cmd.Context(), func() { time.AfterFunc(notifyAfterInterrupt, stop) })()
	for i := range events {
		notify(ctx, k.cmd, &k.f.notify, k.doc.Header, &events[i])
	}
	if v.Result != nil && ctx.Err() == nil {
		k.mark(k.fars[v.Peer].series, mark{v.Result.At, v.Result.RunID})
	}
}

// print prints tests and events that are not printed yet.
func (k *rechecker) print() error {
	if k.doc.Tests == nil {
		k.doc.Tests = []record.RecheckTest{}
	}
	if k.doc.Events == nil {
		k.doc.Events = []record.RecheckEvent{}
	}
	doc := k.doc
	if k.f.every == 0 && console.WantsJSON(k.cmd) && !console.WantsStream(k.cmd) {
		return present.JSON(k.cmd.OutOrStdout(), &doc)
	}
	k.doc.Tests = nil
	k.doc.Events = nil
	if console.WantsStream(k.cmd) {
		if len(doc.Tests) == 0 && len(doc.Events) == 0 && !doc.Interrupted {
			return nil
		}
		return present.Object(k.cmd, k.cmd.OutOrStdout(), &doc)
	}
	if console.WantsJSON(k.cmd) {
		line, err := json.Marshal(&doc)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(k.cmd.OutOrStdout(), "%s\n", line)
		return err
	}
	if len(doc.Tests) == 0 && len(doc.Events) == 0 && !doc.Interrupted {
		return nil
	}
	return text.Write(k.cmd.OutOrStdout(), &doc)
}
