package peer

import (
	"context"
	"net/url"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/ndt7"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const ndt7Scheme = "ndt7://"

// OnceOnly reports whether the peer is for single measurements: an ndt7 server, which programs may test only every
// few hours (ndt7 specification, "Requirements for non-interactive clients").
func OnceOnly(text string) bool { return strings.HasPrefix(text, ndt7Scheme) }

// openNDT7 parses an ndt7 server: HOST[:PORT], with ?access_token=… if it requires one.
func openNDT7(_ context.Context, text string, o Options) (transfer.Peer, error) {
	const form = "ndt7://HOST[:PORT], or ndt7://HOST?access_token=TOKEN"
	host, query, _ := strings.Cut(strings.TrimPrefix(text, ndt7Scheme), "?")
	address, err := hostPortOr(strings.TrimSuffix(host, "/"), ndt7.DefaultPort)
	if err != nil {
		return nil, &BadPeer{text, err.Error(), form}
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, &BadPeer{text, "what follows the ? is malformed", form}
	}
	far := ndt7.NewPeer(address)
	far.Query = values
	far.Route = o.Route
	far.Agent = o.Agent
	far.Note = o.Note
	return far, nil
}
