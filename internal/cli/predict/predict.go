// Package predict predicts the goodput of a stated path.
package predict

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/predict"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/record/guard"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// flags are a path and a transfer over it.
type flags struct {
	path                  string
	rate, flowCap         units.Rate
	rtt, jitter           cmdflag.Duration
	loss, queue           string
	stack, near, far      string
	direction             string
	send, receive, window units.Size
	write                 units.Size
	noDelay               bool
	congestion            string
	mss, connections      int
	bytes                 units.Size
	time                  cmdflag.Duration
	app                   string
}

// New returns the command predict.
func New() *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "predict --path PATH | --rate RATE --rtt TIME",
		Short: "goodput of a path with stated buffers, loss, write size and stack",
		Long: `predict computes the goodput of a TCP transfer on a stated path, its limiter
and the next limiter. The goodput is a range; the measured value is inside it in nine of ten
cases. It measures nothing. X limits a transfer if the goodput without X would be at least
10 % higher.

PATH is the name of a lab profile, or settings such as
rate=100mbit,rtt=40ms,loss=0.01%,queue=1bdp,… (see: fullpipe lab list). The flags --rate,
--rtt, --loss, --jitter, --queue, --near and --far add to PATH or replace its values. The
models and their sources are in docs/how-verdicts-are-reached.md.`,
		Example: `  fullpipe predict --rate 100mbit --rtt 40ms --receive-buffer 64KiB
  fullpipe predict --path wan-40ms --loss 0.1% --congestion bbr --bytes 1GB
  fullpipe predict --rate 100mbit --rtt 40ms --stack windows-xp --write-size 16KiB
  fullpipe predict --rate 10gbit --rtt 70ms --flow-cap 5gbit --connections 2
  fullpipe predict --path satellite-600ms --connections 8 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runPredict(cmd, f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.path, "path", "", "a profile's name or settings, as lab has them")
	fl.Var(&f.rate, "rate", "rate of the path at the IP layer, for example 100mbit")
	fl.Var(&f.flowCap, "flow-cap", "rate limit of one connection, as cloud providers set it, "+
		"for example 5gbit")
	fl.Var(&f.rtt, "rtt", "minimum RTT of the path, for example 40ms")
	fl.Var(&f.jitter, "jitter", "jitter: how much the delay of each direction varies")
	fl.StringVar(&f.loss, "loss", "", "share of segments lost: 0.1%; 0.1%/4: in bursts of 4")
	fl.StringVar(&f.queue, "queue", "", "queue of the line: 1bdp, 150kB or 100packets")
	fl.StringVar(&f.stack, "stack", "", "TCP stack of both hosts: "+
		strings.Join(cmdflag.StackNames(), ", ")+", or any other --target of plan")
	fl.StringVar(&f.near, "near", "", "the stack of this host")
	fl.StringVar(&f.far, "far", "", "the stack of the far host")
	fl.StringVarP(&f.direction, "direction", "d", "up", "direction of the data: up (this host sends) or down")
	fl.Var(&f.send, "send-buffer", "send buffer of the sender (SO_SNDBUF; default: automatic)")
	fl.Var(&f.receive, "receive-buffer", "receive buffer of the receiver (SO_RCVBUF; default: "+
		"automatic)")
	fl.Var(&f.window, "window", "maximum receive window (TCP_WINDOW_CLAMP)")
	fl.Var(&f.write, "write-size", "bytes of each write by the sender (default: large writes)")
	fl.BoolVar(&f.noDelay, "no-delay", false, "the sender sends part segments at once (TCP_NODELAY)")
	fl.StringVarP(&f.congestion, "congestion", "C", "", "the sender's congestion control: "+
		"cubic, reno or bbr (default: that of its stack)")
	fl.IntVar(&f.mss, "mss", 0, "maximum segment size in bytes (TCP_MAXSEG)")
	fl.IntVar(&f.connections, "connections", 1, "connections at one time")
	fl.StringVar(&f.app, "app", "", "also apply the limit of this program's own window: "+
		strings.Join(catalog.ProgramNames(), ", "))
	fl.VarP(&f.bytes, "bytes", "n", "payload of all connections together")
	fl.VarP((*cmdflag.Period)(&f.time), "time", "t",
		"duration of the transfer (default without --bytes: until the rate is steady)")
	return cmd
}

func runPredict(cmd *cobra.Command, f *flags) error {
	program, err := cmdflag.FindProgram(f.app)
	if err != nil {
		return err
	}
	stated, err := f.text(cmd, program)
	if err != nil {
		return err
	}
	path, err := link.Parse(stated)
	if err != nil {
		return f.pathError(err)
	}
	if f.direction != "up" && f.direction != "down" {
		return exit.Usage("--direction", fmt.Sprintf("%q is no direction", f.direction), "up or down")
	}
	if f.connections < 1 {
		return exit.Usage("--connections", fmt.Sprintf("%d carry nothing", f.connections), "1 or more")
	}
	lane := path.Up
	if f.direction == "down" {
		lane = path.Down
	}
	w := program.Window(float64(lane.Rate), path.RTT)
	if w > 0 && !program.FixesBuffers() && (f.window == 0 || int(f.window) > w) {
		f.window = units.Size(w)
	}
	answer, err := predict.Transfer(path, predict.Setup{Direction: transfer.Direction(f.direction),
		SendBuffer:    int(f.send),
		ReceiveBuffer: int(f.receive), Window: int(f.window), WriteBytes: int(f.write), NoDelay: f.noDelay,
		Congestion: f.congestion,
		MSS:        f.mss, Connections: f.connections, FlowCap: int64(f.flowCap), Bytes: int64(f.bytes),
		Time: time.Duration(f.time)})
	var wrong *predict.ArgumentError
	switch {
	case errors.As(err, &wrong):
		return exit.Usage("--"+wrong.Argument, wrong.Message, wrong.Right)
	case err != nil:
		return err
	}
	answer.Warnings = text.Notes(answer.Warnings)
	doc := &record.Predict{Header: present.Header(cmd), Path: record.PredictPath{Text: stated, RateBps: float64(lane.Rate),
		RTTS: path.RTT.Seconds()},
		Direction: f.direction, Connections: f.connections, Answer: *answer}
	guard.Predicted(doc)
	return present.Document(cmd, doc)
}

// text returns the whole path as lab takes it.
func (f *flags) text(cmd *cobra.Command, program catalog.Program) (string, error) {
	if f.path == "" && (f.rate <= 0 || f.rtt <= 0) {
		return "", exit.Usage("--path", "the goodput depends on the path",
			"--rate 100mbit --rtt 40ms, or --path wan-40ms")
	}
	var parts []string
	if f.path != "" {
		parts = append(parts, strings.TrimPrefix(f.path, lab.Prefix))
	}
	add := func(flag, key, value string) {
		if cmd.Flags().Changed(flag) {
			parts = append(parts, key+"="+value)
		}
	}
	add("rate", "rate", strconv.FormatFloat(float64(f.rate)/1e6, 'f', -1, 64)+"mbit")
	add("rtt", "rtt", time.Duration(f.rtt).String())
	add("jitter", "jitter", time.Duration(f.jitter).String())
	add("loss", "loss", f.loss)
	add("queue", "queue", f.queue)
	add("stack", "stack", f.stack)
	add("near", "near.stack", f.near)
	add("far", "far.stack", f.far)
	if program.FixesBuffers() {
		add("app", "app", program.Name)
	}
	return strings.Join(parts, ","), nil
}

// pathError names the flag where a flag said what was wrong.
func (f *flags) pathError(err error) error {
	var fault *link.Error
	if !errors.As(err, &fault) {
		return exit.Usage("--path", exit.Plain(err), "fullpipe lab list")
	}
	flags := map[string]string{"near.stack": "near", "far.stack": "far", "stack": "stack", "rate": "rate", "rtt": "rtt",
		"jitter": "jitter",
		"loss":   "loss", "queue": "queue"}
	if name, ok := flags[fault.Argument]; ok && f.path == "" {
		return exit.Usage("--"+name, fault.Message, fault.Hint)
	}
	return exit.Usage("--path: "+fault.Argument, fault.Message, fault.Hint)
}
