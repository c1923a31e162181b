// Package iperf2 speaks the protocol of iperf 2, in both roles.
//
// Peer measures with an iperf 2 server (iperf -s) at the far end. TCP needs no protocol: the client connects and
// sends, and the server prints its result where it runs. So a Peer only sends, the far end's command line sets the
// far end's sockets, and acknowledged bytes count as received. Since 2.0.13 a server looks at the first four bytes for
// flags that announce a header. Flags of 0 announce none, and every version counts the following bytes as payload.
//
// Server is the other role: see its documentation.
package iperf2

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/bulk"
	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// DefaultPort is where iperf 2 listens.
const DefaultPort = 5001

// noFlags announces no header. Servers that look for flags do not count these four bytes; older ones count them as
// payload.
var noFlags [4]byte

const (
	dialTime = 15 * time.Second
	// maxStreams limits the connections to another operator's server, which has a thread for each.
	maxStreams = 128
)

// Peer is an iperf 2 server. It reports nothing about its end of a transfer: a Result's Far is nil.
type Peer struct {
	// Address is the server's HOST:PORT.
	Address string
	// Route selects the source address and interface of all connections.
	Route socket.Route

	ctx   context.Context // ends with Close
	close context.CancelFunc
}

// NewPeer returns a Peer for the server at address. It connects when a transfer runs.
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

// Check returns *transfer.Unsupported for a test that an iperf 2 server cannot run.
func (p *Peer) Check(t transfer.Test) error {
	spec, err := t.OneWay("tests with an iperf 2 server use TCP", "an iperf 2 server only receives")
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
		return no("Direction", "an iperf 2 server only receives; for the other direction run fullpipe serve there")
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
		return no("Program.RequestResponse", "an iperf 2 server sends no replies")
	case spec.Streams > maxStreams:
		return no("Streams", fmt.Sprintf("at most %d connections to another operator's server", maxStreams))
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
	endpoint := bulk.Endpoint{Send: true, Spec: r.Spec, Streams: streams, Preface: int64(len(noFlags)),
		Each: transfer.WithDirection(transfer.Up, each)}
	load := func() (err error) {
		r.Started = time.Now()
		r.Near, err = endpoint.Run(ctx)
		return err
	}
	if r.Spec.Latency { // the server would count another connection as a test
		var why string
		r.Latency, why, err = path.UnderLoad(ctx, server, path.Config{Route: p.Route, OnlyICMP: true}, load)
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

// open connects all streams and sends noFlags on each. On an error it closes them.
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
	o := bulk.Options(true, spec.Near)
	o.Route = p.Route
	for len(streams) < max(spec.Streams, 1) {
		conn, err := socket.Dial(ctx, p.Address, o)
		if err != nil {
			return streams, server, &probe.NoServerError{Program: "iperf 2", Address: p.Address,
				Timeout: dialTime, Err: err, Start: "start iperf -s there, or give its port as iperf2://HOST:PORT"}
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
