package tune

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// nothing is the goodput, in bit/s, of a transfer of which nothing arrived.
const nothing = 1

// swallowed makes a trial of a transfer whose full segments vanished, if that is what happened.
func (l *loop) swallowed(t *Trial, v verdict.Verdict) bool {
	if l.today.Limiter == verdict.MTUBlackHole {
		v = l.today // a short run tells less
	}
	if v.Limiter != verdict.MTUBlackHole {
		return false
	}
	t.verdict = v
	t.Limiter = v.Limiter
	t.Goodput = nothing
	return true
}

// errNothing says that of a transfer nothing arrived.
var errNothing = errors.New("nothing arrived")

// timeouts is how long a transfer takes to show that its full segments vanish: four timeouts,
// each twice as long as the one before (RFC 6298 section 5.5).
const timeouts = 5 * time.Second

// sizes are segments to try where full ones vanish: as large as the packets that were seen to
// pass, what fits today's tunnels (IPv6's least MTU less headers), and what fits any path (RFC
// 9293 section 3.7.1).
func (l *loop) sizes() (sizes []int) {
	fits := l.out.Path.MTU - l.headers()
	for _, size := range []int{fits, 1200, 536} {
		if size >= 536 && size < l.out.Path.MSS && (len(sizes) == 0 || size < sizes[len(sizes)-1]) {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// headers are those of IP and TCP without options, which TCP_MAXSEG leaves out.
func (l *loop) headers() int {
	if l.near != nil && len(l.near.Streams) > 0 && l.near.Streams[0].Remote.Addr().Unmap().Is6() {
		return ipv6Headers
	}
	return model.IPHeaders
}

// pass finds segments that pass where full ones vanish. What does is the answer, for nothing
// else can be measured; the proof is to show it.
func (l *loop) pass(ctx context.Context) error {
	for _, size := range l.sizes() {
		s := Setup{MSS: size}
		if !l.can(s) || l.over(0.8) {
			continue
		}
		t, err := l.try(ctx, l.with(s, max(14*l.out.Path.RTT, time.Second), "do smaller segments pass?"))
		if err != nil {
			return err
		}
		if t.Goodput > nothing {
			l.learn(&t)
			l.allow()
			l.winner = s
			return nil
		}
	}
	return nil
}

// swallows says that today's transfers do not arrive.
func (l *loop) swallows() bool {
	return len(l.out.Trials) > 0 && l.out.Trials[0].Automatic && l.out.Trials[0].Goodput <= nothing
}

// smaller has the route to the far end, or else the host, send segments that pass: the route's MTU
// where this host sends, the MSS that it asks for where it receives.
func (d *Direction) smaller(prefix string, routed bool, far netip.Addr) []host.Change {
	headers := model.IPHeaders
	if far.Unmap().Is6() {
		headers = ipv6Headers
	}
	switch {
	case routed && d.Direction == transfer.Up:
		return []host.Change{host.Set(host.Route, prefix+" mtu", strconv.Itoa(d.Chosen.MSS+headers))}
	case routed:
		return []host.Change{host.Set(host.Route, prefix+" advmss", strconv.Itoa(d.Chosen.MSS))}
	case d.Direction == transfer.Up:
		return []host.Change{host.Set(host.Sysctl, "net.ipv4.tcp_mtu_probing", "1")} // RFC 4821
	}
	return nil
}

// ipv6Headers are those of IPv6 and TCP without options.
const ipv6Headers = model.IPHeaders + 20
