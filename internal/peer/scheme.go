package peer

import (
	"context"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/iperf2"
	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Scheme is a kind of far end.
type Scheme struct {
	Name string // before ://
	Form string // of a PEER
	// TestOnly reports that such a far end only runs tests: opening it neither logs in nor requests a URL.
	TestOnly bool

	port int // default of HOST[:PORT]; 0: open parses the whole text
	open func(ctx context.Context, address string, o Options) (transfer.Peer, error)
}

// Schemes are the kinds of far ends that Open knows. The first needs no name.
var Schemes = []Scheme{
	{"fullpipe", "fullpipe://HOST[:PORT]", true, transfer.DefaultPort, openNative},
	{"iperf3", "iperf3://HOST[:PORT]", true, transfer.DefaultPort, openIperf3},
	{"iperf2", "iperf2://HOST[:PORT]", true, iperf2.DefaultPort, openIperf2},
	{"ndt7", "ndt7://HOST[:PORT]", true, 0, openNDT7},
	{"ssh", "ssh://[USER@]HOST", false, 0, openSSH},
	{"http", "http://…", false, 0, openDownload},
	{"https", "https://…", false, 0, openDownload},
}

// forms returns all forms of a PEER.
func forms() string {
	all := []string{"HOST", "HOST:PORT"}
	for _, s := range Schemes {
		all = append(all, s.Form)
	}
	return strings.Join(all, ", ") + " or lab:PROFILE"
}

func openIperf3(_ context.Context, address string, o Options) (transfer.Peer, error) {
	far := iperf3.NewPeer(address)
	far.Route = o.Route
	return far, nil
}

func openIperf2(_ context.Context, address string, o Options) (transfer.Peer, error) {
	far := iperf2.NewPeer(address)
	far.Route = o.Route
	return far, nil
}
