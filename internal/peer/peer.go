// Package peer opens the far end that a user's PEER names.
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

	"github.com/fullpipe-net/fullpipe/internal/didyoumean"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Options are the options of a peer.
type Options struct {
	Key *probe.Key // nil: none
	// Await is how long a refused connection is retried, for far ends that start at the same time.
	Await time.Duration
	// Copy copies this binary to an ssh far end for the test. Tunnel measures through the ssh connection.
	Copy, Tunnel bool
	// CopyName names the copy there, so that RunThere can run it while the far end is open; "": Open makes one up, and
	// RunThere copies.
	CopyName string
	// Route is the route of all connections to the peer.
	Route socket.Route
	// MaxBytes limits the total bytes of downloads; 0: download's default.
	MaxBytes int64
	// Load announces a load of requests.
	Load bool
	// Agent is the User-Agent for web servers.
	Agent string
	// TestID is a UUID that identifies the test in both ends' records; "": none.
	TestID string
	// Clock, if not nil, receives the offset of the far end's clock, if known.
	Clock func(transfer.Clock)
	// Note, if not nil, receives notes for the user before the measurement.
	Note func(string)

	sshTimes *sshTimeouts // nil: defaultSSHTimeouts
}

// BadPeer reports an invalid PEER.
type BadPeer struct{ Text, Why, Hint string }

func (b *BadPeer) Error() string { return fmt.Sprintf("peer %q: %s", b.Text, b.Why) }

// Try returns a valid form.
func (b *BadPeer) Try() string { return b.Hint }

// Open connects to the peer that text names.
func Open(ctx context.Context, text string, o Options) (transfer.Peer, error) {
	scheme, rest, named := strings.Cut(text, "://")
	kind := 0
	if named {
		kind = slices.IndexFunc(Schemes, func(s Scheme) bool { return s.Name == scheme })
	} else {
		rest = text
	}
	if kind < 0 {
		return nil, unknownScheme(text, scheme, rest)
	}
	s := Schemes[kind]
	if s.port == 0 {
		return s.open(ctx, text, o)
	}
	address, err := hostPortOr(rest, s.port)
	if err != nil {
		return nil, &BadPeer{text, err.Error(), forms()}
	}
	return s.open(ctx, address, o)
}

// unknownScheme returns the error for a PEER of an unknown kind, with the most similar one.
func unknownScheme(text, scheme, rest string) error {
	try := forms()
	names := []string{}
	for _, s := range Schemes {
		names = append(names, s.Name)
	}
	if near := didyoumean.Nearest(scheme, names); near != "" {
		try = near + "://" + rest
	}
	return &BadPeer{text, "no kind of peer is called " + strconv.Quote(scheme), try}
}

// openNative connects to a fullpipe server, or without a key to an iperf3 server.
func openNative(ctx context.Context, address string, o Options) (transfer.Peer, error) {
	if o.Key == nil {
		if far, ok := probeIperf3(ctx, address, o.Route); ok {
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
		far.OnQueued = func(place int) {
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

// identify returns the error for a server that needs a key, with the kind of server that listens there.
func identify(ctx context.Context, address string, by socket.Route) error {
	server, err := probe.Identify(ctx, address, by)
	if err != nil {
		return err
	}
	return &probe.Error{Address: address, Err: errors.New(server + " listens there, and no key was given"),
		Hint: "the key that it printed when it started, with --key, --key-file or FULLPIPE_KEY"}
}

// hostPortOr parses HOST, HOST:PORT, an IPv6 address or [IPv6]:PORT. usual is the default port.
func hostPortOr(text string, usual int) (string, error) {
	host := text
	port := strconv.Itoa(usual)
	switch colons := strings.Count(text, ":"); {
	case strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]"):
		host = text[1 : len(text)-1]
	case colons == 1 || strings.HasPrefix(text, "["):
		var err error
		host, port, err = net.SplitHostPort(text)
		if err != nil {
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
