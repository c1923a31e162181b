package agent

import (
	"context"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus/embed"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestConnected_HelloAgain connects an agent to a hub that does not listen yet, and then cannot store anything for a
// while. The agent says hello until the hub knows it, and once.
func TestConnected_HelloAgain(t *testing.T) {
	t.Parallel()
	server, err := embed.Start(func(context.Context, string, netip.Addr) (string, error) { return "anna", nil }, "secret")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown()
	handler := server.Handler()
	door := httptest.NewServer(handler)
	defer door.Close()
	hub := must.Get(server.Connect())(t)
	defer hub.Close()
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	events, ended := make(chan Event, 100), make(chan error, 1)
	go func() {
		ended <- Run(ctx, Config{State: State{ID: "anna", URLs: []string{"ws" + strings.TrimPrefix(door.URL, "http")}},
			Key: key, Dir: t.TempDir(), Listen: "127.0.0.1:0", Event: func(e Event) { events <- e }})
	}()
	await := func(kind string) {
		t.Helper()
		deadline := time.After(time.Minute)
		for {
			select {
			case e := <-events:
				if e.Kind == kind {
					return
				}
			case <-deadline:
				t.Fatalf("no event %q", kind)
			}
		}
	}
	await("lost") // no responders
	var hellos atomic.Int32
	_, err = hub.Subscribe(bus.AnyUp(bus.HelloKind), func(m *nats.Msg) {
		welcome := bus.Welcome{V: bus.Version, Error: "the hub cannot store it now", Later: time.Second}
		if hellos.Add(1) == 3 {
			welcome = bus.Welcome{V: bus.Version, Name: "anna", Lead: bus.Lead{Epoch: 7}}
		}
		_ = m.Respond(bus.Encode(welcome))
	})
	if err != nil {
		t.Fatal(err)
	}
	await("connected")
	time.Sleep(time.Second)
	if n := hellos.Load(); n != 3 {
		t.Errorf("%d hellos", n)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
