package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/farend"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/cli/progress"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// udpFlags are the flags of measure --udp.
type udpFlags struct {
	on       bool
	capacity bool
	rate     units.Rate
	datagram units.Size
}

// datagramSpecs are the UDP transfers to carry out, one for each direction; nil without
// --udp.
func (f *flags) datagramSpecs(cmd *cobra.Command) ([]transfer.DatagramSpec, error) {
	if !f.udp.on {
		for _, flag := range []string{"rate", "datagram", "capacity"} {
			if cmd.Flags().Changed(flag) && !(flag == "rate" && f.requests.wanted()) {
				return nil, exit.Usage("--"+flag, "is about UDP", "--udp with it")
			}
		}
		return nil, nil
	}
	for _, flag := range []string{"bytes", "send-buffer", "receive-buffer", "window", "write-size", "congestion", "mss",
		"no-delay",
		"write-rate", "read-rate", "exchange", "copy-data"} {
		if cmd.Flags().Changed(flag) {
			return nil, exit.Usage("--"+flag, "is about TCP", "leave it out with --udp; --rate and --datagram say how UDP "+
				"is sent")
		}
	}
	if f.udp.capacity && (cmd.Flags().Changed("rate") || f.parallel > 1) {
		return nil, exit.Usage("--capacity", "searches the rate itself, with one stream", "leave --rate and --parallel out")
	}
	if f.udp.capacity && !cmd.Flags().Changed("time") {
		f.time = capacityTime
	}
	if f.udp.capacity && f.time < 2*time.Second {
		return nil, exit.Usage("--time", "a capacity is the best of several seconds", "3s or more; 10s if not given")
	}
	if f.udp.datagram < 16 || f.udp.datagram > 65507 {
		return nil, exit.Usage("--datagram", fmt.Sprintf("%d bytes are no datagram's size here", int64(f.udp.datagram)),
			"16 to 65507")
	}
	tcp, err := f.specs()
	if err != nil {
		return nil, err
	}
	var specs []transfer.DatagramSpec
	for _, s := range tcp {
		specs = append(specs, transfer.DatagramSpec{Direction: s.Direction, Bps: float64(f.udp.rate),
			Size:    int(f.udp.datagram),
			Streams: f.parallel, Time: f.time, TOS: f.dscp << 2})
	}
	return specs, nil
}

func (f *flags) runUDP(cmd *cobra.Command, text string, specs []transfer.DatagramSpec) error {
	ctx := cmd.Context()
	f.Notes = console.Progress(cmd)
	far, err := f.Open(ctx, text)
	if err != nil {
		return err
	}
	defer far.Close()
	var without *transfer.Unsupported
	if errors.As(far.Check(transfer.UDP(specs[0])), &without) && without.Field == transfer.FieldUDP {
		return exit.Usage("--udp", "this far end carries TCP only", "a host with iperf3 -s or fullpipe serve")
	}
	if f.udp.capacity {
		return f.runCapacity(cmd, text, far, specs)
	}
	if f.bidir {
		return f.runUDPBoth(cmd, text, far, specs[0], specs[1])
	}
	losses := farend.WatchDatagrams()
	defer losses.Close()
	watched := losses.Peer(far)
	doc := record.MeasureUDP{Header: present.Header(cmd), Peer: lab.PeerName(text)}
	for _, spec := range specs {
		lines := progress.NewIntervals(console.Progress(cmd), f.every(console.Progress(cmd)),
			transfer.Spec{Direction: spec.Direction, Time: spec.Time})
		lines.Plain = true
		result, err := transfer.RunDatagrams(ctx, watched, spec, func(i transfer.Interval) {
			present.Interval(cmd, spec.Direction, []transfer.Interval{i})
			lines.Show(spec.Direction, i)
		})
		lines.Clear()
		var unsupported *transfer.Unsupported
		if errors.As(err, &unsupported) {
			err = cannotHave(unsupported, "leave that option out")
		}
		if result != nil {
			f.addDatagrams(&doc, result)
		}
		if err != nil {
			return endUDP(cmd, &doc, err)
		}
	}
	return showJudged(cmd, &doc, doc.Criteria)
}

func (f *flags) addDatagrams(doc *record.MeasureUDP, r *transfer.DatagramResult) {
	judged := live.JudgeDatagrams(r)
	direction := report.Datagrams(r, judged)
	doc.Directions = append(doc.Directions, direction)
	doc.Criteria = append(doc.Criteria, f.criteria.judge(direction.Direction, &direction.GoodputBps, judged,
		losses{direction.LostAt, direction.Lost == 0})...)
}

// runUDPBoth sends UDP both ways at the same time.
func (f *flags) runUDPBoth(cmd *cobra.Command, text string, far transfer.Peer, up,
	down transfer.DatagramSpec) error {
	test := transfer.UDP(up, down)
	if refusal := oneAtATime(far.Check(test)); refusal != nil {
		return refusal
	}
	out := console.Progress(cmd)
	lines := progress.NewIntervals(out, f.every(out), transfer.Spec{Direction: transfer.Up, Time: up.Time},
		transfer.Spec{Direction: transfer.Down, Time: up.Time})
	lines.Plain = true
	losses := farend.WatchDatagrams()
	defer losses.Close()
	outcomes, err := losses.Peer(far).Run(cmd.Context(), test, func(i transfer.Interval) {
		present.Interval(cmd, i.Direction, []transfer.Interval{i})
		lines.Show(i.Direction, i)
	})
	lines.Clear()
	var unsupported *transfer.Unsupported
	if errors.As(err, &unsupported) {
		return cannotHave(unsupported, "leave that option out, or --direction both")
	}
	doc := record.MeasureUDP{Header: present.Header(cmd), Peer: lab.PeerName(text)}
	for _, o := range outcomes {
		if r := o.Datagrams; r != nil {
			r.Warnings = append(r.Warnings, concurrent)
			f.addDatagrams(&doc, r)
		}
	}
	if err != nil {
		return endUDP(cmd, &doc, err)
	}
	return showJudged(cmd, &doc, doc.Criteria)
}

// endUDP prints the results before an error.
func endUDP(cmd *cobra.Command, doc *record.MeasureUDP, err error) error {
	if len(doc.Directions) == 0 {
		return err
	}
	return present.Incomplete(cmd, doc, &doc.Error, err)
}

// runCapacity searches the largest rate that UDP gets through, each direction alone.
func (f *flags) runCapacity(cmd *cobra.Command, text string, far transfer.Peer,
	specs []transfer.DatagramSpec) error {
	doc := record.Capacity{Header: present.Header(cmd), Peer: lab.PeerName(text)}
	for _, spec := range specs {
		direction, err := f.capacityByFeedback(cmd, far, spec)
		var unsupported *transfer.Unsupported
		if errors.As(err, &unsupported) && unsupported.Field == "Search" {
			console.Note(cmd, "%s: no feedback from there (%s): whole trials instead", spec.Direction, unsupported.Reason)
			direction, err = searchCapacity(cmd.Context(), far, spec, func(bps float64) {
				console.Note(cmd, "%s: trying %s", spec.Direction, units.Rate(bps))
			})
		}
		if len(direction.Trials) > 0 {
			doc.Directions = append(doc.Directions, direction)
		}
		if err != nil && len(doc.Directions) == 0 {
			return err
		}
		if err != nil {
			return present.Incomplete(cmd, &doc, &doc.Error, err)
		}
	}
	return present.Document(cmd, &doc)
}

// capacityTime is how long a search by feedback takes, RFC 9097's default.
const capacityTime = 10 * time.Second

// capacityByFeedback lets the sender search while it sends.
func (f *flags) capacityByFeedback(cmd *cobra.Command, far transfer.Peer, spec transfer.DatagramSpec) (
	record.CapacityDirection, error) {
	spec.Search = true
	spec.Bps = 0
	out := console.Progress(cmd)
	lines := progress.NewIntervals(out, f.every(out), transfer.Spec{Direction: spec.Direction, Time: spec.Time})
	lines.Plain = true
	r, err := transfer.RunDatagrams(cmd.Context(), far, spec, func(i transfer.Interval) { lines.Show(spec.Direction, i) })
	lines.Clear()
	if r == nil {
		return record.CapacityDirection{Direction: spec.Direction}, err
	}
	return report.Capacity(r), err
}

// searchCapacity tries whole rates, one after the other.
func searchCapacity(ctx context.Context, far transfer.Peer, spec transfer.DatagramSpec, trying func(float64)) (
	record.CapacityDirection, error) {
	out := record.CapacityDirection{Direction: spec.Direction, Protocol: "udp", Method: record.ByTrials}
	var capacity search.Capacity
	framed := 1 + 28/float64(spec.Size) // until it is known which IP
	for {
		bps, done := capacity.Next()
		out.CapacityBps, out.AtLeast = capacity.Best()
		if done {
			return out, nil
		}
		trying(bps)
		spec.Bps = bps / framed
		spec.Time = time.Second
		r, err := transfer.RunDatagrams(ctx, far, spec, nil)
		if err != nil {
			return out, err
		}
		framed = 1 + float64(r.Headers)/float64(spec.Size)
		trial := search.CapacityTrial{OfferedBps: bps,
			SentBps:     float64(r.Sent*int64(spec.Size)*8) / spec.Time.Seconds() * framed,
			ReceivedBps: r.Bps() * framed, LossRatio: r.LossRatio()}
		if r.Variation != nil {
			trial.Variation = units.Duration(r.Variation.P95)
		}
		out.Trials = append(out.Trials, trial)
		capacity.Observe(trial)
	}
}
