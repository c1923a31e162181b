// Package peer turns what users write for PEER into a far end to measure with.
package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/iperf2"
	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Options say how to reach a peer.
type Options struct {
	Key *probe.Key // nil: none at hand
	// Await is how long a refused connection is tried again: a far end that was
	// started together with us may not listen yet.
	Await time.Duration
	// Copy brings this program to an ssh far end for the while; Tunnel measures through
	// the ssh connection.
	Copy, Tunnel bool
	// Route is the way that everything to the peer takes.
	Route socket.Route
	// MaxBytes bounds what is fetched from a web server, in all; 0 is download's default.
	MaxBytes int64
	// Agent is how web servers are told who asks.
	Agent string
	// TestID names what is measured in both ends' records, a UUID; "" is none.
	TestID string
	// Clock, when not nil, is told how the far end's clock stands to this host's, where the
	// far end tells its time.
	Clock func(transfer.Clock)
	// Note, when not nil, is told what the user should know before anything is measured.
	Note func(string)

	sshTimes *sshTimes // nil: usualSSH
}

// DefaultPort is where fullpipe serve listens.
const DefaultPort = 5201

// BadPeer is a PEER text that names no peer.
type BadPeer struct{ Text, Why, Hint string }

func (b *BadPeer) Error() string { return fmt.Sprintf("peer %q: %s", b.Text, b.Why) }

// Try is what would be right.
func (b *BadPeer) Try() string { return b.Hint }

const forms = "HOST, HOST:PORT, fullpipe://HOST[:PORT], iperf3://HOST[:PORT], iperf2://HOST[:PORT], " +
	"ndt7://HOST[:PORT], ssh://[USER@]HOST, " +
	"http://…, https://… or lab:PROFILE"

// Open connects to the peer that text names.
func Open(ctx context.Context, text string, o Options) (transfer.Peer, error) {
	rest := text
	if scheme, after, found := strings.Cut(text, "://"); found {
		switch scheme {
		case "fullpipe":
			rest = after
		case "iperf3":
			address, err := hostPort(after)
			if err != nil {
				return nil, &BadPeer{text, err.Error(), forms}
			}
			far := iperf3.NewPeer(address)
			far.Route = o.Route
			return far, nil
		case "iperf2":
			address, err := hostAt(after, iperf2.DefaultPort)
			if err != nil {
				return nil, &BadPeer{text, err.Error(), forms}
			}
			far := iperf2.NewPeer(address)
			far.Route = o.Route
			return far, nil
		case "ndt7":
			return openNDT7(text, o)
		case "http", "https":
			return openDownload(ctx, text, o)
		case "ssh":
			return openSSH(ctx, text, o)
		default:
			return nil, &BadPeer{text, "no kind of peer is called " + strconv.Quote(scheme), forms}
		}
	}
	address, err := hostPort(rest)
	if err != nil {
		return nil, &BadPeer{text, err.Error(), forms}
	}
	if o.Key == nil {
		if far, ok := meetIperf3(ctx, address, o.Route); ok {
			return far, nil
		}
		return nil, identify(ctx, address, o.Route)
	}
	until := time.Now().Add(o.Await)
	for {
		client, err := o.connect(ctx, probe.Far{Address: address, Key: *o.Key, Route: o.Route})
		if err == nil {
			return &native{client}, nil
		}
		if !errors.Is(err, syscall.ECONNREFUSED) || time.Now().After(until) {
			return nil, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// connect connects to a fullpipe server.
func (o *Options) connect(ctx context.Context, far probe.Far) (*probe.Client, error) {
	far.TestID = o.TestID
	if o.Note != nil {
		far.Waiting = func(place int) {
			o.Note(fmt.Sprintf("%s takes one client at a time: place %d in its queue", far.Address, place))
		}
	}
	client, err := far.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if clock, ok := client.Clock(); ok && o.Clock != nil {
		o.Clock(clock)
	}
	return client, nil
}

// identify says why an address cannot be measured with without a key.
func identify(ctx context.Context, address string, by socket.Route) error {
	what, err := probe.Identify(ctx, address, by)
	if err != nil {
		return err
	}
	return &probe.Error{Address: address, Err: errors.New(what + " answers there, and no key is at hand"),
		Hint: "the key that it printed when it started, with --key, --key-file or FULLPIPE_KEY"}
}

// hostPort reads HOST, HOST:PORT, an IPv6 address or [IPv6]:PORT.
func hostPort(text string) (string, error) { return hostAt(text, DefaultPort) }

// hostAt is hostPort with another port where none is written.
func hostAt(text string, usual int) (string, error) {
	host := text
	port := strconv.Itoa(usual)
	switch colons := strings.Count(text, ":"); {
	case strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]"):
		host = text[1 : len(text)-1]
	case colons == 1 || strings.HasPrefix(text, "["):
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			return "", errors.New("not HOST:PORT")
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("port %q is not between 1 and 65535", port)
	}
	_, err := netip.ParseAddr(host)
	if host == "" || strings.ContainsAny(host, "/ \t@[]\x00") || strings.Contains(host, ":") && err != nil {
		return "", errors.New("no host is called that")
	}
	return net.JoinHostPort(host, port), nil
}

// KeyVariable is where a key may stand in the environment.
const KeyVariable = "FULLPIPE_KEY"

// historyVariable is the URL of the history, which may hold a password.
const historyVariable = "FULLPIPE_STORE"

// WithoutSecrets removes the far end's key and the history's URL from the environment of a program that is not ours.
func WithoutSecrets(env []string) []string {
	return slices.DeleteFunc(env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == KeyVariable || name == historyVariable
	})
}
