package peer

import (
	"context"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/download"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// DownOnly reports whether the peer only supports downloads.
func DownOnly(text string) bool {
	return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")
}

func openDownload(ctx context.Context, address string, o Options) (transfer.Peer, error) {
	far, err := download.Open(ctx, address, download.Config{MaxBytes: o.MaxBytes, Agent: o.Agent, Route: o.Route,
		Load: o.Load})
	if err != nil {
		return nil, err
	}
	if o.Note != nil {
		for _, line := range far.States() {
			o.Note(line)
		}
	}
	return far, nil
}
