package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// peerFlags are what every command with a PEER takes: how to reach it and who sends.
type peerFlags struct {
	keyFlags
	direction    string
	bind         string
	only4, only6 bool
	copy, tunnel bool // of ssh far ends
	once         bool // a single measurement, which every far end is for
	notes        io.Writer
}

// add adds them all.
func (p *peerFlags) add(fl *pflag.FlagSet) {
	p.addReach(fl, "")
	fl.StringVarP(&p.direction, "direction", "d", "up", "who sends: up (this host), down or both, one after the other; "+
		"down from a web server")
	fl.BoolVar(&p.copy, "copy", false, "ssh://: bring this program to the far end for the while")
	fl.BoolVar(&p.tunnel, "tunnel", false, "ssh://: measure through the ssh connection, where the data port is blocked")
}

// addReach adds what says how to get there; when says in the help where it matters.
func (p *peerFlags) addReach(fl *pflag.FlagSet, when string) {
	p.keyFlags.add(fl)
	fl.StringVar(&p.bind, "bind", "", when+"address of this host to send from, or interface to send through")
	fl.BoolVarP(&p.only4, "ipv4", "4", false, when+"reach the peer over IPv4 only")
	fl.BoolVarP(&p.only6, "ipv6", "6", false, when+"reach the peer over IPv6 only")
}

// path returns the series of a command's tests of a far end, with the options that every such command has.
func (p *peerFlags) path(command, hostID, far string) record.Path {
	path := record.Path{HostID: hostID, Far: far, Kind: command, Protocol: "tcp", Others: record.BindOption(p.bind)}
	if scheme, _, ok := strings.Cut(far, "://"); ok {
		path.Kind += " " + scheme
	}
	switch {
	case p.only4:
		path.IPVersion = 4
	case p.only6:
		path.IPVersion = 6
	}
	return path
}

// series returns the series of a command without further options.
func (p *peerFlags) series(command string) series {
	return func(hostID, far string) record.Path { return p.path(command, hostID, far) }
}

// downOnly makes a PEER that can only be downloaded from send, unless the user said who
// does.
func (p *peerFlags) downOnly(cmd *cobra.Command, text string) {
	if peer.DownOnly(text) && !cmd.Flags().Changed("direction") {
		p.direction = "down"
	}
}

// directions are those to measure, in their order.
func (p *peerFlags) directions() ([]transfer.Direction, error) {
	switch p.direction {
	case "up":
		return []transfer.Direction{transfer.Up}, nil
	case "down":
		return []transfer.Direction{transfer.Down}, nil
	case "both":
		return []transfer.Direction{transfer.Up, transfer.Down}, nil
	}
	return nil, &usageError{"--direction", fmt.Sprintf("%q is no direction", p.direction), "up, down or both"}
}

// route is the way out of this host that was asked for.
func (p *peerFlags) route() (socket.Route, error) {
	family := 0
	switch {
	case p.only4 && p.only6:
		return socket.Route{}, &usageError{"-4", "leaves no IP version together with -6", "one of them, or neither"}
	case p.only4:
		family = 4
	case p.only6:
		family = 6
	}
	route, err := socket.ParseRoute(p.bind, family)
	if err != nil {
		return route, &usageError{"--bind", plain(err), "an address of this host, or an interface as in eth0"}
	}
	return route, nil
}

// open connects to the PEER.
func (p *peerFlags) open(ctx context.Context, text string) (transfer.Peer, error) {
	if peer.OnceOnly(text) && !p.once {
		return nil, &usageError{"PEER", "an ndt7 server is for single tests: its specification asks programs to leave " +
			"hours between them", "fullpipe measure with it, or fullpipe serve at the far end"}
	}
	key, err := p.find(ctx)
	if err != nil {
		return nil, err
	}
	if line := p.exposed(); line != "" && !p.exposureNoted {
		p.note(line)
		p.exposureNoted = true
	}
	route, err := p.route()
	if err != nil {
		return nil, err
	}
	far, err := peer.Open(ctx, text, peer.Options{Key: key, Route: route, Await: awaits(text), Copy: p.copy,
		Tunnel: p.tunnel,
		Agent:  "fullpipe (" + version() + ")", Note: p.note, TestID: sessionOf(ctx).testID, Clock: sessionOf(ctx).met})
	var bad *peer.BadPeer
	if errors.As(err, &bad) {
		return nil, &usageError{"PEER", strings.TrimPrefix(bad.Error(), "peer "), bad.Try()}
	}
	return far, err
}

// again opens the PEER a second time, for a transfer beside the first one's.
func (p *peerFlags) again(ctx context.Context, text string, first transfer.Peer) (transfer.Peer, error) {
	switch first.(type) {
	case *iperf3.Peer:
		return nil, &usageError{"--goal", "fair runs two transfers at once, and an iperf3 server runs one",
			"fullpipe serve at the far end"}
	}
	notes := p.notes
	defer func() { p.notes = notes }()
	p.notes = nil // it was said
	return p.open(ctx, text)
}

func (p *peerFlags) note(line string) {
	if p.notes != nil {
		fmt.Fprintln(p.notes, render.Line(line))
	}
}

// onePeer checks that one PEER was given.
func onePeer(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return &usageError{"PEER", fmt.Sprintf("%d given, one is needed", len(args)), cmd.CommandPath() + " --help"}
	}
	return nil
}
