package agent

import (
	"strings"
	"testing"

	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestOpen_LocksTheStateDirectory checks that a directory has one agent at a time, and that a failed start leaves no
// lock.
func TestOpen_LocksTheStateDirectory(t *testing.T) {
	dir := t.TempDir()
	key := must.Get(nkeys.CreateUser())(t)
	config := Config{State: State{ID: "anna", URLs: []string{"nats://127.0.0.1:1"}}, Key: key, Dir: dir,
		Listen: "127.0.0.1:0"}
	broken := config
	broken.Listen = "nowhere"
	if _, err := open(t.Context(), broken); err == nil {
		t.Fatal("it listens nowhere")
	}
	t.Run("one", func(t *testing.T) {
		newAgentIn(t, dir, Limits{})
		if _, err := open(t.Context(), config); err == nil || !strings.Contains(err.Error(), dir+" is the state directory") {
			t.Errorf("a second agent: %v", err)
		}
	})
	newAgentIn(t, dir, Limits{})
}

// TestOrder_ForAnotherProcess checks that only the process that is meant replies to an order and to a ping.
func TestOrder_ForAnotherProcess(t *testing.T) {
	a := newAgent(t, Limits{})
	b := newAgent(t, Limits{})
	if a.instance == b.instance {
		t.Fatal("two processes have one instance")
	}
	o := order(bus.RoleServe)
	o.Instance = a.instance
	if reply := b.order(bus.Encode(o)); reply != nil || len(b.serving) > 0 {
		t.Errorf("another process: %+v", reply)
	}
	if reply := a.order(bus.Encode(o)).(bus.OrderReply); reply.Refused != "" {
		t.Errorf("its own: %+v", reply)
	}
	ping := bus.Encode(bus.Ping{Instance: a.instance})
	if a.ping(ping) == nil || b.ping(ping) != nil || a.ping([]byte("{")) != nil {
		t.Error("the wrong process replies to a ping")
	}
}
