package recheck

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
)

// platforms are the domains of M-Lab's servers, which are nobody's own.
var platforms = []string{"measurement-lab.org", "measurementlab.net"}

// ownAddresses are ranges beside the private ones that no server on the Internet has (RFC 6598,
// 2544, 5737, 5180, 3849): what is there is on this host's own networks.
var ownAddresses = []netip.Prefix{netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:2::/48"),
	netip.MustParsePrefix("2001:db8::/32")}

// publicServer says whether a PEER is a speed test server for everybody: an ndt7 server that has
// a public address and of which nobody says that it is the user's own, or one of M-Lab's. What
// cannot be found out counts as one.
func publicServer(ctx context.Context, far string, own bool) bool {
	if !peer.OnceOnly(far) {
		return false
	}
	host := strings.TrimSuffix(farHost(far), ".")
	if slices.ContainsFunc(platforms, func(d string) bool { return host == d || strings.HasSuffix(host, "."+d) }) {
		return true
	}
	if own {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	return err != nil || len(all) == 0 || slices.ContainsFunc(all, func(a netip.Addr) bool { return !ownAddress(a) })
}

func ownAddress(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() ||
		slices.ContainsFunc(ownAddresses, func(p netip.Prefix) bool { return p.Contains(a) })
}

const turnForm = "fullpipe recheck public 1 %d\n" // when the next test may begin, ns since 1970

// turn takes the turn of public servers, whose lock is held: all processes of this user share
// it, and it is noted before the test, so that who is killed has had it.
func (k *rechecker) turn(now, next time.Time) (until time.Time, err error) {
	name := filepath.Join(k.dir, "recheck-public")
	text, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return until, err
	}
	var ns int64
	if _, err := fmt.Sscanf(string(text), turnForm, &ns); err == nil {
		until = time.Unix(0, ns)
		if until.After(now) && !until.After(recheck.LatestPublic(now)) { // else the clock was set
			return until, nil
		}
	}
	return time.Time{}, k.replace(name, fmt.Appendf(nil, turnForm, next.UnixNano()))
}
