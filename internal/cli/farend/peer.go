// Package farend reaches the far end that PEER names, by the flags that all commands with one have.
package farend

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/serverkey"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// awaitFar is how long a far end that a lab started together with us may take to listen.
const awaitFar = 3 * time.Second

// awaits gives the far end of a lab time to listen, and no other one.
func awaits(text string) time.Duration {
	for _, name := range []string{"FULLPIPE_FAR", "FULLPIPE_FAR_OUTSIDE"} {
		if far := os.Getenv(name); far != "" && strings.Contains(text, far) {
			return awaitFar
		}
	}
	return 0
}

// PeerFlags are the flags of every command with a PEER: how to reach it and which end sends.
type PeerFlags struct {
	serverkey.KeyFlags
	Direction    string
	Bind         string
	Only4, Only6 bool
	Copy, tunnel bool // of ssh far ends
	// CopyName names the copy that the first Open brought to an ssh far end.
	CopyName string
	Once     bool // a single measurement, which every far end is for
	Load     bool // a load of requests
	Notes    io.Writer
}

// Add adds them all.
func (p *PeerFlags) Add(fl *pflag.FlagSet) {
	p.AddReach(fl, "")
	fl.StringVarP(&p.Direction, "direction", "d", "up", "which end sends: up (this host), down "+
		"(PEER) or both, one after the other; a web server can only send (down)")
	fl.BoolVar(&p.Copy, "copy", false, "for ssh:// peers: copy this program to the far host "+
		"for the test, then delete it")
	fl.BoolVar(&p.tunnel, "tunnel", false,
		"for ssh:// peers: measure through the ssh connection, for networks that block the "+
			"data port")
}

// AddReach adds the flags that set how to reach the far end. when begins their help.
func (p *PeerFlags) AddReach(fl *pflag.FlagSet, when string) {
	p.KeyFlags.Add(fl)
	fl.StringVar(&p.Bind, "bind", "", when+"address of this host to send from, or interface to send through")
	fl.BoolVarP(&p.Only4, "ipv4", "4", false, when+"reach the peer over IPv4 only")
	fl.BoolVarP(&p.Only6, "ipv6", "6", false, when+"reach the peer over IPv6 only")
}

// Path returns the series of a command's tests of a far end, with the options that every such command has.
func (p *PeerFlags) Path(command, hostID, far string) record.SeriesID {
	path := record.SeriesID{HostID: hostID, Far: far, Kind: command, Protocol: "tcp", Others: record.BindOption(p.Bind)}
	if scheme, _, ok := strings.Cut(far, "://"); ok {
		path.Kind += " " + scheme
	}
	switch {
	case p.Only4:
		path.IPVersion = 4
	case p.Only6:
		path.IPVersion = 6
	}
	return path
}

// Series returns the series of a command without further options.
func (p *PeerFlags) Series(command string) history.Series {
	return func(hostID, far string) record.SeriesID { return p.Path(command, hostID, far) }
}

// DownOnly sets the direction down for a PEER that only sends, unless the user gave a direction.
func (p *PeerFlags) DownOnly(cmd *cobra.Command, text string) {
	if peer.DownOnly(text) && !cmd.Flags().Changed("direction") {
		p.Direction = "down"
	}
}

// Directions returns the directions to measure, in order.
func (p *PeerFlags) Directions() ([]transfer.Direction, error) {
	switch p.Direction {
	case "up":
		return []transfer.Direction{transfer.Up}, nil
	case "down":
		return []transfer.Direction{transfer.Down}, nil
	case "both":
		return []transfer.Direction{transfer.Up, transfer.Down}, nil
	}
	return nil, exit.Usage("--direction", fmt.Sprintf("%q is no direction", p.Direction), "up, down or both")
}

// Route returns the requested source address or interface.
func (p *PeerFlags) Route() (socket.Route, error) {
	family := 0
	switch {
	case p.Only4 && p.Only6:
		return socket.Route{}, exit.Usage("-4", "leaves no IP version together with -6", "one of them, or neither")
	case p.Only4:
		family = 4
	case p.Only6:
		family = 6
	}
	route, err := socket.ParseRoute(p.Bind, family)
	if err != nil {
		return route, exit.Usage("--bind", exit.Plain(err), "an address of this host, or an interface as in eth0")
	}
	return route, nil
}

// Open connects to the PEER.
func (p *PeerFlags) Open(ctx context.Context, text string) (transfer.Peer, error) {
	if peer.OnceOnly(text) && !p.Once {
		return nil, exit.Usage("PEER", "an ndt7 server is for single tests: its specification asks programs to leave "+
			"hours between them", "use fullpipe measure with this server, or run fullpipe serve at the far end")
	}
	key, err := p.Find(ctx)
	if err != nil {
		return nil, err
	}
	if line := p.Exposed(); line != "" && !p.ExposureNoted {
		p.Note(line)
		p.ExposureNoted = true
	}
	route, err := p.Route()
	if err != nil {
		return nil, err
	}
	name := rand.Text()
	p.CopyName = cmp.Or(p.CopyName, name)
	far, err := peer.Open(ctx, text, peer.Options{Key: key, Route: route, Await: awaits(text), Copy: p.Copy,
		CopyName: name, Tunnel: p.tunnel,
		Load: p.Load, Agent: "fullpipe (" + build.Version() + ")", Note: p.Note, TestID: history.SessionOf(ctx).TestID,
		Clock: history.SessionOf(ctx).Met})
	var bad *peer.BadPeer
	if errors.As(err, &bad) {
		return nil, exit.Usage("PEER", strings.TrimPrefix(bad.Error(), "peer "), bad.Try())
	}
	return far, err
}

// OpenAgain opens the PEER a second time, for a concurrent transfer.
func (p *PeerFlags) OpenAgain(ctx context.Context, text string, first transfer.Peer) (transfer.Peer, error) {
	switch first.(type) {
	case *iperf3.Peer:
		return nil, exit.Usage("--goal", "fair runs two transfers at once, and an iperf3 server runs one",
			"fullpipe serve at the far end")
	}
	notes := p.Notes
	defer func() { p.Notes = notes }()
	p.Notes = nil // it was noted
	return p.Open(ctx, text)
}

// Note prints a line where notes go.
func (p *PeerFlags) Note(line string) {
	if p.Notes != nil {
		fmt.Fprintln(p.Notes, render.Line(line))
	}
}

// OnePeer checks that one PEER was given.
func OnePeer(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return exit.Usage("PEER", fmt.Sprintf("%d given, one is needed", len(args)), cmd.CommandPath()+" --help")
	}
	return nil
}
