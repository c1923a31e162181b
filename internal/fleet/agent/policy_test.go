package agent

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/outbox"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestPolicy_HostileHub lets a hub send 10 orders a second for 10 minutes of a virtual clock, each of connections to 16
// addresses, in each role. At most 30 orders pass at once, and one a second in the mean. Those that connect, and fail,
// have 2,000 connections.
func TestPolicy_HostileHub(t *testing.T) {
	for _, role := range []string{bus.RoleTest, bus.RoleServe} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			spent := must.Get(openLedger(t.Context(), dir, Limits{}))(t)
			a := &agent{Config: Config{Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}, ctx: t.Context(),
				box: outbox.In(dir), spent: spent, serving: map[string]*servedRun{},
				orders: admission.Limiter{Every: orderEvery, Burst: orderBurst}}
			begin := time.Now()
			accepted, connections := 0, 0
			for time.Since(begin) < 10*time.Minute {
				o := order(role)
				for role == bus.RoleTest && len(o.Peers) < bus.MaxAddresses {
					o.Peers = append(o.Peers, o.Peers[0])
				}
				if reason, _ := a.refusal(&o); reason == "" {
					accepted++
					if role == bus.RoleTest { // it fails: its connections count
						connections += connectionsOf(&o)
						must.Get(spent.charge(time.Now(), Use{Connections: connectionsOf(&o)}))(t)
					}
				}
				if limit := orderBurst + int(time.Since(begin)/orderEvery); accepted > limit {
					t.Fatalf("%s: %d orders in %v, at most %d", role, accepted, time.Since(begin), limit)
				}
				time.Sleep(100 * time.Millisecond)
			}
			if connections > maxFailedConnections || role == bus.RoleTest && connections < maxFailedConnections-20 ||
				role == bus.RoleServe && accepted < 600 {
				t.Errorf("%s: %d orders, %d connections", role, accepted, connections)
			}
			t.Logf("%s: %d orders, %d connections", role, accepted, connections)
		})
	}
}
