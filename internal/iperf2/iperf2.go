// Package iperf2 measures with an iperf 2 server (iperf -s) at the far end: a sink of
// bytes that says nothing. There is no protocol but TCP's own: whoever connects sends, and
// the server prints what came where it runs. So a transfer goes up only, the far end's
// sockets are its own command line's to set, and what arrived is what was acknowledged.
//
// Since 2.0.13 a server looks at the first four bytes for flags that announce a header. All
// of them 0 is what clients of before had no header for, and every version takes what
// follows as payload.
package iperf2

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/engine"
	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// DefaultPort is where iperf 2 listens.
const DefaultPort = 5001

// noFlags are the four bytes that announce no header. Servers that look for flags do not
// count them; older ones take them for payload.
var noFlags [4]byte

const (
	dialTime = 15 * time.Second
	// mostStreams is what is opened to somebody else's server, which has a thread for each.
	mostStreams = 128
)

// Peer is an iperf 2 server. Its end of a transfer cannot be seen: a Result's Far is nil.
type Peer struct {
	// Address is the server's HOST:PORT.
	Address string
	// Route is the way that everything to the server takes.
	Route socket.Route

	ctx   context.Context // ends with Close
	close context.CancelFunc
}

// NewPeer describes the server at address; it connects when a transfer runs.
func NewPeer(address string) *Peer {
	p := &Peer{Address: address}
	p.ctx, p.close = context.WithCancel(context.Background())
	return p
}

// Close ends a running transfer.
func (p *Peer) Close() error {
	p.close()
	return nil
}

// Check answers *transfer.Unsupported for what a sink cannot do.
func (p *Peer) Check(t transfer.Test) error {
	spec, err := t.OneWay("an iperf 2 server is measured with over TCP", "an iperf 2 server only receives")
	if err != nil {
		return err
	}
	return check(spec)
}

func check(spec transfer.Spec) error {
	no := func(field, why string) error { return &transfer.Unsupported{Field: field, Reason: why} }
	if err := spec.Validate(); err != nil {
		return err
	}
	const own = "an iperf 2 server sets its own sockets: start it with "
	switch far := spec.Far; {
	case spec.Direction != transfer.Up:
		return no("Direction", "an iperf 2 server only receives; for the way back run fullpipe serve or iperf3 -s there")
	case far.ReceiveBuffer != 0:
		return no("Far.ReceiveBuffer", own+"iperf -s -w SIZE")
	case far.MSS != 0:
		return no("Far.MSS", own+"iperf -s -M SIZE")
	case far.Clamp != 0:
		return no("Far.Clamp", "an iperf 2 server cannot clamp a window")
	case far.Congestion != "":
		return no("Far.Congestion", "the far end only receives")
	case far != (transfer.Socket{}):
		return no("Far", "an iperf 2 server sets its own sockets")
	case spec.Program.ReadBps != 0:
		return no("Program.ReadBps", "an iperf 2 server reads as fast as it can")
	case spec.Program.RequestResponse:
		return no("Program.RequestResponse", "an iperf 2 server never answers")
	case spec.Streams > mostStreams:
		return no("Streams", fmt.Sprintf("at most %d connections to somebody else's server", mostStreams))
	}
	return nil
}

// Run implements transfer.Peer.
func (p *Peer) Run(ctx context.Context, t transfer.Test, each func(transfer.Interval)) ([]transfer.Outcome, error) {
	if err := p.Check(t); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.ctx, func() { cancel(errors.New("closed")) })()
	r := &transfer.Result{Spec: *t.Legs[0].TCP}
	streams, server, err := p.open(ctx, r.Spec)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, s := range streams {
			s.Close()
		}
	}()
	endpoint := engine.Endpoint{Send: true, Spec: r.Spec, Streams: streams, Preface: int64(len(noFlags)),
		Each: transfer.WithDirection(transfer.Up, each)}
	load := func() (err error) {
		r.Started = time.Now()
		r.Near, err = endpoint.Run(ctx)
		return err
	}
	if r.Spec.Latency { // another connection would be another test there
		var why string
		r.Latency, why, err = path.Beside(ctx, server, path.Config{Route: p.Route, OnlyICMP: true}, load)
		if why != "" {
			r.Warnings = append(r.Warnings, why)
		}
	} else {
		err = load()
	}
	if r.Near != nil {
		r.Near.TimeByAcknowledgements()
	}
	r.Complete = err == nil
	return []transfer.Outcome{{TCP: r}}, err
}

// open connects all streams and announces no header on each. With an error none is left.
func (p *Peer) open(ctx context.Context, spec transfer.Spec) (streams []*socket.Stream, server netip.AddrPort,
	err error) {
	defer func() {
		if err != nil {
			for _, s := range streams {
				s.Reset()
				s.Close()
			}
			streams = nil
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	o := engine.Options(true, spec.Near)
	o.Route = p.Route
	for len(streams) < max(spec.Streams, 1) {
		conn, err := socket.Dial(ctx, p.Address, o)
		if err != nil {
			return streams, server, &unreachable{p.Address, err}
		}
		if _, err := conn.Write(noFlags[:]); err != nil {
			conn.Close()
			return streams, server, fmt.Errorf("stream %d: %w", len(streams)+1, err)
		}
		if to, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
			server = to.AddrPort()
		}
		s, err := socket.NewStream(conn, o)
		if err != nil {
			return streams, server, err
		}
		streams = append(streams, s)
	}
	return streams, server, nil
}

// unreachable is a server that no connection could be made to.
type unreachable struct {
	address string
	err     error
}

func (e *unreachable) Error() string {
	return fmt.Sprintf("no iperf 2 server at %s: %v", e.address, e.err)
}
func (e *unreachable) Unwrap() error { return e.err }

// Try names the way out.
func (e *unreachable) Try() string {
	var closer interface{ Try() string }
	if errors.As(e.err, &closer) {
		return closer.Try()
	}
	return "start iperf -s there, or give its port as iperf2://HOST:PORT"
}
