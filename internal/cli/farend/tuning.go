package farend

import (
	"context"
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/tune"
)

// Tuning returns how the path to the far end is tuned, by the flags that every command with a PEER has.
func (p *PeerFlags) Tuning() (cfg tune.Config, err error) {
	if cfg.Directions, err = p.Directions(); err != nil {
		return cfg, err
	}
	route, err := p.Route()
	if err != nil {
		return cfg, err
	}
	cfg.Echo = Echo(route)
	cfg.Late = present.TooLate
	return cfg, nil
}

// Echo asks a host by a route; what cannot be had stays unknown.
func Echo(by socket.Route) func(ctx context.Context, to netip.AddrPort, rtt, spend time.Duration) (path.RoundTrips,
	path.MTU) {
	return func(ctx context.Context, to netip.AddrPort, rtt, spend time.Duration) (path.RoundTrips, path.MTU) {
		const every = 20 * time.Millisecond
		count := min(max(int(spend/(rtt+every)), 5), 20)
		trips, err := path.Ask(ctx, to, path.Config{Count: count, Every: every, Route: by})
		if err != nil {
			trips = path.RoundTrips{}
		}
		mtu, err := path.FindMTU(ctx, to.Addr(), path.Config{Patience: 4*rtt + time.Second, Route: by})
		if err != nil {
			mtu = path.MTU{}
		}
		return trips, mtu
	}
}
