package measure

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/cli/progress"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/turns"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// requestFlags are the flags of measure --rr and --crr.
type requestFlags struct {
	on, connect       bool
	request, response units.Size
	concurrency       int
	perSecond         float64 // requests; 0: --rate has a unit
	badRate           error   // why --rate is no rate of UDP
	limits            cmdflag.RequestLimits
}

// rateValue is the value of --rate: a rate of UDP, or a number of requests a second.
type rateValue struct {
	*units.Rate
	requests *requestFlags
}

func (v *rateValue) Set(text string) error {
	err := v.Rate.Set(text)
	v.requests.perSecond = 0
	v.requests.badRate = nil
	if n, bad := strconv.ParseFloat(strings.TrimSuffix(text, "/s"), 64); bad == nil && n > 0 {
		v.requests.perSecond = n
		v.requests.badRate = err
		return nil
	}
	return err
}

func (r *requestFlags) add(fl *pflag.FlagSet) {
	r.request = 200
	r.response = 1000
	fl.BoolVar(&r.on, "rr", false, "send requests over open connections, and report their durations and the causes "+
		"of slow ones")
	fl.BoolVar(&r.connect, "crr", false, "as --rr, with a new connection for each request")
	fl.Var(&r.request, "request-size", "with --rr or --crr: bytes of a request")
	fl.Var(&r.response, "response-size", "with --rr or --crr: bytes of a response")
	fl.IntVar(&r.concurrency, "concurrency", 1, "with --rr or --crr: requests at a time, each on a connection of its own")
}

// wanted reports whether a load of requests was asked for.
func (r *requestFlags) wanted() bool { return r.on || r.connect }

// key is the load's part of a series' key. It never changes.
func (r *requestFlags) key() string {
	return fmt.Sprintf("requests new=%t request=%d response=%d per-second=%g ", r.connect, r.request, r.response,
		r.perSecond)
}

const ownSizes = "leave it out: a web server's addresses have their sizes"

// requestSpec returns the load of requests that was asked for; on is false for another transfer.
func (f *flags) requestSpec(cmd *cobra.Command, isWeb bool) (spec transfer.Spec, on bool, err error) {
	changed := cmd.Flags().Changed
	if !f.requests.wanted() {
		for _, flag := range []string{"request-size", "response-size", "concurrency"} {
			if changed(flag) {
				return spec, false, exit.Usage("--"+flag, "is about requests", "--rr or --crr with it")
			}
		}
		return spec, false, nil
	}
	for _, flag := range []string{"direction", "bytes", "max-bytes", "parallel", "window", "receive-buffer", "write-size",
		"write-rate", "read-rate", "exchange", "copy-data", "bidir", "udp", "capacity", "datagram", "picture", "compare",
		"csv", "json-stream", "fail-below", "no-delay", "interval"} {
		if changed(flag) {
			return spec, false, exit.Usage("--"+flag, "is not about requests", "leave it out with --rr and --crr; "+
				"--concurrency and --rate say how many requests are sent")
		}
	}
	r := &f.requests
	kinds := turns.ExchangeStalls()
	if isWeb {
		kinds = nil
	}
	if err := cmdflag.Check(
		cmdflag.If(r.on && r.connect, "--crr", "is another load than --rr", "one of them"),
		cmdflag.If(r.concurrency < 1, "--concurrency", fmt.Sprintf("%d requests at a time are none", r.concurrency),
			"1 or more"),
		cmdflag.If(isWeb && changed("request-size"), "--request-size", "is for fullpipe serve", ownSizes),
		cmdflag.If(isWeb && changed("response-size"), "--response-size", "is for fullpipe serve", ownSizes),
	); err != nil {
		return spec, false, err
	}
	r.limits, err = cmdflag.ParseRequestLimits(f.criteria.on, kinds)
	if err != nil {
		return spec, false, err
	}
	specs, err := f.specs()
	if err != nil {
		return spec, false, err
	}
	spec = transfer.Spec{Direction: transfer.Up, Near: specs[0].Near, Far: specs[0].Near, Streams: r.concurrency,
		Time: f.time, Requests: transfer.Requests{RequestBytes: int(r.request), ResponseBytes: int(r.response),
			NewConnections: r.connect}}
	spec.Near.NoDelay = true // as servers and their clients do
	spec.Far.NoDelay = true
	if isWeb {
		spec.Far = transfer.Socket{}
	}
	if changed("rate") && r.perSecond == 0 {
		return spec, false, exit.Usage("--rate", "requests are counted by the second", "500")
	}
	spec.Requests.PerSecond = r.perSecond
	if err := spec.Validate(); err != nil {
		return spec, false, requestRefusal(err)
	}
	return spec, true, nil
}

// requestRefusal names the option that cannot be had.
func requestRefusal(err error) error {
	var unsupported *transfer.Unsupported
	if !errors.As(err, &unsupported) {
		return err
	}
	if unsupported.Field == "Streams" {
		return exit.Usage("--concurrency", "cannot be had: "+unsupported.Reason, "a lower number")
	}
	if unsupported.Field == transfer.FieldRequests {
		return exit.Usage("--rr", "cannot be had: "+unsupported.Reason,
			"a host with this version of fullpipe serve, or a web address")
	}
	return cannotHave(unsupported, "a value that the far end allows, or leave that option out")
}

func (f *flags) runRequests(cmd *cobra.Command, text string, spec transfer.Spec) error {
	ctx := cmd.Context()
	f.Notes = console.Progress(cmd)
	f.Load = true
	far, err := f.Open(ctx, text)
	if err != nil {
		return err
	}
	defer far.Close()
	lines := progress.NewIntervals(console.Progress(cmd), 0, spec)
	result, err := transfer.Run(ctx, far, spec, func(i transfer.Interval) { lines.Show(spec.Direction, i) })
	lines.Clear()
	if result == nil || result.Load == nil {
		return requestRefusal(err)
	}
	doc := record.MeasureRequests{Header: present.Header(cmd), Peer: lab.PeerName(text)}
	report.Requests(&doc, result)
	if err != nil {
		return present.Incomplete(cmd, &doc, &doc.Error, err)
	}
	doc.Criteria = f.requests.limits.JudgeLoad(&doc.Requests, result.Load.Missing(), result.Load.StallsKnown())
	if err := present.Document(cmd, &doc); err != nil {
		return err
	}
	if cmdflag.RequestsFailed(doc.Criteria) {
		return exit.Status(exit.No)
	}
	return nil
}
