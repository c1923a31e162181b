package iperf3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/cli/progress"
	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	face "github.com/fullpipe-net/fullpipe/internal/render/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// connect runs iperf3's client.
func (f *flags) connect(cmd *cobra.Command) error {
	params, err := f.params(cmd)
	if err != nil {
		return err
	}
	route, err := f.route()
	if err != nil {
		return err
	}
	asked := face.Options{Host: f.host(), Port: int(f.port), Interval: f.reportInterval(), System: systemInfo()}
	account, passed, err := f.runTest(cmd, params, route, asked)
	doc := face.Begin(account, asked)
	doc.Finish(account, asked, passed.cuts)
	if account != nil {
		doc.Fullpipe = verdicts(account)
	}
	if err != nil {
		doc.Error = iperf3Message(cmd.Context(), err)
	}
	if err := f.print(cmd, doc, passed.printed()); err != nil {
		return err
	}
	if doc.Error != "" {
		return exit.Status(exit.Failed)
	}
	return nil
}

// runTest runs the test and prints its intervals.
func (f *flags) runTest(cmd *cobra.Command, params iperf3.Params, route socket.Route,
	asked face.Options) (*iperf3.TestResult, *livePrinter, error) {
	ctx := cmd.Context()
	peer := iperf3.NewPeer(f.address())
	peer.Route = route
	defer peer.Close()
	connected := func() {}
	if f.timeout > 0 {
		bounded, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		timer := time.AfterFunc(time.Duration(f.timeout)*time.Millisecond, func() { cancel(syscall.ETIMEDOUT) })
		defer timer.Stop()
		ctx = bounded
		connected = func() { timer.Stop() }
	}
	passing := &livePrinter{f: f, cmd: cmd}
	specs := []transfer.Spec{{Direction: transfer.Up, Time: time.Duration(params.Time+params.Omit) * time.Second,
		Bytes: params.Num}}
	if params.Reverse {
		specs[0].Direction = transfer.Down
	}
	if params.Both {
		specs = append(specs, transfer.Spec{Direction: transfer.Down, Time: specs[0].Time})
	}
	bars := progress.NewIntervals(console.Progress(cmd), 0, specs...)
	command := iperf3.Command{Params: params, Interval: f.reportInterval(), Port: uint16(f.clientPort),
		OnConnect: connected,
		OnOpen:    func(a iperf3.TestResult) { passing.open(&a, asked) },
		OnInterval: func(i transfer.Interval) {
			passing.add(i)
			if console.WantsJSON(cmd) && !f.stream { // otherwise the printed intervals show progress
				bars.Show(i.Direction, i)
			}
		}}
	if cmd.Flags().Changed("rcv-timeout") {
		command.IdleTimeout = time.Duration(f.receiveTimeoutMs) * time.Millisecond
	}
	account, err := peer.RunCommand(ctx, command)
	bars.Clear()
	return account, passing, err
}

// write prints text, with the title and time in front of each line.
func (f *flags) write(cmd *cobra.Command, write func(face.Text)) error {
	var b strings.Builder
	t := face.Text{W: &b, Verbose: f.verbose}
	if f.format != "" {
		t.Format = f.format[0]
	}
	write(t)
	out := b.String()
	if f.title != "" || f.timestamps != "" {
		before := ""
		if f.timestamps != "" {
			before = strftime(f.timestamps, time.Now())
		}
		if f.title != "" {
			before += f.title + ":  "
		}
		var marked strings.Builder
		for line := range strings.Lines(out) {
			marked.WriteString(before + line)
		}
		out = marked.String()
	}
	_, err := io.WriteString(cmd.OutOrStdout(), out)
	return err
}

// print prints the end of the test and the intervals that are not printed yet.
func (f *flags) print(cmd *cobra.Command, doc *face.Document, printed int) error {
	f.printIntervals(cmd, doc, printed, doc.Intervals[min(printed, len(doc.Intervals)):])
	var err error
	switch {
	case f.stream:
		if doc.Error != "" {
			f.event(cmd, "error", doc.Error, nil)
		}
		if doc.Object != nil {
			f.event(cmd, "server_output_json", doc.Object, nil)
		}
		if doc.Text != "" {
			f.event(cmd, "server_output_text", doc.Text, nil)
		}
		err = f.event(cmd, "end", doc.End, doc.Fullpipe)
	case console.WantsJSON(cmd):
		err = present.JSON(cmd.OutOrStdout(), doc)
	default:
		shown := *render.Document(doc)
		var text strings.Builder
		for line := range strings.Lines(doc.Text) {
			text.WriteString(render.Line(strings.TrimSuffix(line, "\n")) + "\n")
		}
		shown.Text = text.String()
		err = f.write(cmd, func(t face.Text) { t.Ending(&shown) })
		if doc.Error != "" {
			fmt.Fprintln(cmd.ErrOrStderr(), "iperf3: error - "+render.Line(doc.Error))
		} else if err == nil && !f.server.on {
			err = f.write(cmd, func(t face.Text) { fmt.Fprintln(t.W, "\niperf Done.") })
		}
		f.noteVerdict(cmd, doc)
	}
	return err
}

// noteVerdict prints the verdict on standard error, where programs that parse the output do not meet it.
func (f *flags) noteVerdict(cmd *cobra.Command, doc *face.Document) {
	if doc.Fullpipe == nil {
		return
	}
	for i := range doc.Fullpipe.Directions {
		d := &doc.Fullpipe.Directions[i]
		console.Note(cmd, "fullpipe: %s: limited by %s", d.Direction, text.Verdict(d))
	}
}

// verdicts returns the verdicts of the TCP directions, as measure prints them.
func verdicts(a *iperf3.TestResult) *face.Fullpipe {
	out := &face.Fullpipe{Version: build.Version(), Directions: []record.Direction{}}
	for _, leg := range a.Legs {
		if leg.TCP != nil && leg.TCP.Near != nil {
			out.Directions = append(out.Directions, report.Direction(leg.TCP, live.Judge(leg.TCP), nil))
		}
	}
	return out
}

// iperf3Message returns iperf3's text for an error, or ours if it has none.
func iperf3Message(ctx context.Context, err error) string {
	var errno syscall.Errno
	var unreachable interface{ Try() string }
	var remote *iperf3.RemoteError
	var refused *iperf3.RefusedError
	var option *socket.OptionError
	var lookup *net.DNSError
	switch {
	case errors.As(err, &remote) && iperf3Messages[remote.Code] != "":
		return iperf3Messages[remote.Code]
	case errors.As(err, &refused) && iperf3Messages[refused.Code] != "":
		return iperf3Messages[refused.Code]
	}
	switch {
	case ctx.Err() != nil:
		return "interrupt - the client has terminated"
	case errors.As(err, &option) && strings.HasPrefix(option.Option, "TCP_CONGESTION"):
		return iperf3Messages[iperf3.CodeCongestion]
	case errors.As(err, &lookup):
		return "unable to connect to server: Name or service not known"
	case errors.As(err, &errno) && errors.As(err, &unreachable):
		return "unable to connect to server: " + capital(errno.Error())
	case errors.Is(err, iperf3.ErrIdle):
		return iperf3Messages[iperf3.CodeNoData]
	}
	return exit.Message(err)
}

// iperf3Messages are iperf3's texts for error codes.
var iperf3Messages = map[iperf3.Code]string{
	iperf3.CodeAccessDenied: "the server is busy running a test. try again later",
	iperf3.CodeAuth:         "test authorization failed",
	iperf3.CodeRate:         "total required bandwidth is larger than server limit",
	iperf3.CodeDuration:     "client's requested duration exceeds the server's maximum permitted limit",
	iperf3.CodeCongestion: "unable to set TCP_CONGESTION: Supplied congestion control algorithm not supported on this " +
		"host",
	iperf3.CodeNoData: "idle timeout for receiving data",
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// machine returns the architecture as uname prints it.
func machine() string {
	if name, ok := map[string]string{"amd64": "x86_64", "arm64": "aarch64", "386": "i686"}[runtime.GOARCH]; ok {
		return name
	}
	return runtime.GOARCH
}
