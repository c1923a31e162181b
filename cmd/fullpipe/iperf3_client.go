package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

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

// connect is iperf3's client.
func (f *iperf3Flags) connect(cmd *cobra.Command) error {
	params, err := f.params(cmd)
	if err != nil {
		return err
	}
	route, err := (&peerFlags{bind: f.bind, only4: f.only4, only6: f.only6}).route()
	if err != nil {
		return err
	}
	asked := face.Asked{Host: f.client, Port: int(f.port), Interval: f.every(), System: systemInfo()}
	account, came, err := f.carry(cmd, params, route, asked)
	doc := face.Begin(account, asked)
	doc.Finish(account, asked, came)
	if account != nil {
		doc.Fullpipe = limits(account)
	}
	if err != nil {
		doc.Error = iperf3Error(cmd.Context(), err)
	}
	if err := f.print(cmd, doc); err != nil {
		return err
	}
	if doc.Error != "" {
		return exitStatus(statusFailed)
	}
	return nil
}

// carry runs the test and collects what moved.
func (f *iperf3Flags) carry(cmd *cobra.Command, params iperf3.Params, route socket.Route,
	asked face.Asked) (*iperf3.Account, map[transfer.Direction]*face.Pieces, error) {
	ctx := cmd.Context()
	peer := iperf3.NewPeer(f.address())
	peer.Route = route
	defer peer.Close()
	if f.timeout > 0 {
		// The bound is of the control connection: it ends once the streams are open.
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		timer := time.AfterFunc(time.Duration(f.timeout)*time.Millisecond, func() { cancel(syscall.ETIMEDOUT) })
		defer timer.Stop()
		return f.carryOn(ctx, cmd, peer, params, asked, func() { timer.Stop() })
	}
	return f.carryOn(ctx, cmd, peer, params, asked, func() {})
}

func (f *iperf3Flags) carryOn(ctx context.Context, cmd *cobra.Command, peer *iperf3.Peer, params iperf3.Params,
	asked face.Asked, opened func()) (*iperf3.Account, map[transfer.Direction]*face.Pieces, error) {
	came := face.NewPieces(f.every())
	var mu sync.Mutex // guards came
	specs := []transfer.Spec{{Direction: transfer.Up, Time: time.Duration(params.Time+params.Omit) * time.Second,
		Bytes: params.Num}}
	if params.Reverse {
		specs[0].Direction = transfer.Down
	}
	if params.Both {
		specs = append(specs, transfer.Spec{Direction: transfer.Down, Time: specs[0].Time})
	}
	bars := newLive(progress(cmd), 0, specs...)
	account, err := peer.Carry(ctx, iperf3.Command{Params: params,
		Opened: func(a iperf3.Account) {
			opened()
			f.open(cmd, face.Begin(&a, asked))
		},
		Each: func(i transfer.Interval) {
			mu.Lock()
			came[i.Direction].Add(i)
			mu.Unlock()
			bars.show(i.Direction, i)
		}})
	bars.clear()
	return account, came, err
}

// open prints what is known when the streams are open.
func (f *iperf3Flags) open(cmd *cobra.Command, doc *face.Document) {
	switch {
	case f.stream:
		json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{"event": "start", "data": doc.Start})
	case !wantsJSON(cmd):
		f.write(cmd, func(t face.Text) { t.Opening(doc) })
	}
}

// write prints text, each line behind the title where there is one.
func (f *iperf3Flags) write(cmd *cobra.Command, write func(face.Text)) error {
	var b strings.Builder
	t := face.Text{W: &b}
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

// print prints the test.
func (f *iperf3Flags) print(cmd *cobra.Command, doc *face.Document) error {
	var err error
	switch {
	case f.stream:
		lines := json.NewEncoder(cmd.OutOrStdout())
		for _, one := range doc.Intervals {
			lines.Encode(map[string]any{"event": "interval", "data": one})
		}
		if doc.Error != "" {
			lines.Encode(map[string]any{"event": "error", "data": doc.Error})
		}
		end := map[string]any{"event": "end", "data": doc.End}
		if doc.Fullpipe != nil {
			end["fullpipe"] = doc.Fullpipe
		}
		err = lines.Encode(end)
	case wantsJSON(cmd):
		err = printJSON(cmd.OutOrStdout(), doc)
	default:
		shown := render.Document(doc)
		err = f.write(cmd, func(t face.Text) { t.Body(shown) })
		if doc.Error != "" {
			fmt.Fprintln(cmd.ErrOrStderr(), "iperf3: error - "+render.Line(doc.Error))
		} else if err == nil && !f.server.on {
			err = f.write(cmd, func(t face.Text) { fmt.Fprintln(t.W, "\niperf Done.") })
		}
		f.say(cmd, doc)
	}
	return err
}

// say tells on standard error what limited the test: nobody who scrapes the text meets
// it there.
func (f *iperf3Flags) say(cmd *cobra.Command, doc *face.Document) {
	if doc.Fullpipe == nil {
		return
	}
	for i := range doc.Fullpipe.Directions {
		d := &doc.Fullpipe.Directions[i]
		note(cmd, "fullpipe: %s: limited by %s", d.Direction, text.Verdict(d))
	}
}

// limits is what fullpipe knows besides: TCP's directions as measure has them.
func limits(a *iperf3.Account) *face.Fullpipe {
	out := &face.Fullpipe{Version: version(), Directions: []record.Direction{}}
	for _, leg := range a.Legs {
		if leg.TCP != nil && leg.TCP.Near != nil {
			out.Directions = append(out.Directions, report.Direction(leg.TCP, live.Judge(leg.TCP), nil))
		}
	}
	return out
}

// iperf3Error is an error in iperf3's words where it has some.
func iperf3Error(ctx context.Context, err error) string {
	var errno syscall.Errno
	var unreachable interface{ Try() string }
	var remote *iperf3.RemoteError
	if errors.As(err, &remote) && iperf3Words[remote.Code] != "" {
		return iperf3Words[remote.Code]
	}
	switch {
	case ctx.Err() != nil:
		return "interrupt - the client has terminated"
	case errors.As(err, &errno) && errors.As(err, &unreachable):
		return "unable to connect to server: " + capital(errno.Error())
	}
	return message(err)
}

// iperf3Words are what iperf3 says of what servers refuse.
var iperf3Words = map[iperf3.Code]string{
	iperf3.CodeAccessDenied: "the server is busy running a test. try again later",
	iperf3.CodeAuth:         "test authorization failed",
	iperf3.CodeRate:         "total required bandwidth is larger than server limit",
	iperf3.CodeDuration:     "client's requested duration exceeds the server's maximum permitted limit",
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// machine is the processor as uname names it.
func machine() string {
	if name, ok := map[string]string{"amd64": "x86_64", "arm64": "aarch64", "386": "i686"}[runtime.GOARCH]; ok {
		return name
	}
	return runtime.GOARCH
}
