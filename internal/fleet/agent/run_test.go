package agent

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// opened returns an agent that does not run yet.
func opened(t *testing.T) (*agent, context.CancelFunc) {
	t.Helper()
	key := must.Get(nkeys.CreateUser())(t)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	a, err := open(ctx, Config{State: State{ID: "anna", URLs: []string{"nats://127.0.0.1:1"}}, Key: key, Dir: t.TempDir(),
		Listen: "127.0.0.1:0", Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	if err != nil {
		t.Fatal(err)
	}
	return a, cancel
}

// TestRun_EndsWhenItCanServeNothing checks that an agent ends with an error if it cannot take orders, or if its server
// fails, also during a run. It waited for ever for its own work.
func TestRun_EndsWhenItCanServeNothing(t *testing.T) {
	for name, fail := range map[string]func(a *agent){
		"no subscription": func(a *agent) { a.conn.Close() },
		"no listener":     func(a *agent) { a.server.Close() },
		"during a hello": func(a *agent) {
			a.connected()
			a.server.Close()
		},
		"during a run": func(a *agent) {
			measuring := make(chan struct{})
			a.Measure = func(ctx context.Context, _ bus.Order, _ *Use) ([]byte, error) {
				close(measuring)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			if reply := a.order(bus.Encode(order(bus.RoleTest))).(bus.OrderReply); reply.Refused != "" {
				t.Error(reply)
				return
			}
			<-measuring
			a.server.Close()
		},
	} {
		a, cancel := opened(t)
		fail(a)
		ended := make(chan error, 1)
		go func() { ended <- a.run(cancel) }()
		select {
		case err := <-ended:
			if err == nil {
				t.Errorf("%s: no error", name)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s: it does not end", name)
		}
		if a.start(func() {}) {
			t.Errorf("%s: it takes work after its end", name)
		}
	}
}
