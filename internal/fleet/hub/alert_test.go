package hub

import (
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// alertHub returns a hub with four agents at two sites, and a grid in which each has measured each other one.
func alertHub(t *testing.T) (*Hub, []store.Cell) {
	t.Helper()
	m, err := mesh.Parse([]byte("[site.fra]\nagents = [\"fra-*\"]\n[site.ber]\nagents = [\"ber-*\"]\n" +
		"[task.t]\nbetween = [\"*\"]\nevery = \"1h\"\n" +
		"[alert.all]\nwebhook = \"https://a.example\"\n" +
		"[alert.limiters]\nwebhook = \"https://b.example.net\"\non = [\"limiter\"]\n" +
		"[alert.berlin]\nwebhook = \"https://b.example\"\nsites = [\"ber\"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	h := New(Config{})
	h.mesh = m
	var cells []store.Cell
	bps := 1e8
	ids := map[string]string{"a": "fra-1", "b": "fra-2", "c": "fra-3", "d": "ber-1"}
	for id, name := range ids {
		h.members[id] = &member{Agent: store.Agent{ID: id, Name: name}}
		for other := range ids {
			if other != id {
				cells = append(cells, store.Cell{Task: "t", Sender: id, Receiver: other, State: mesh.Done, GoodputBps: &bps})
			}
		}
	}
	return h, cells
}

func TestAlert_CommonHost(t *testing.T) {
	h, cells := alertHub(t)
	var events []store.Event
	for _, sender := range []string{"a", "c", "d"} {
		events = append(events, store.Event{Run: "r" + sender, Task: "t", Sender: sender, Receiver: "b", Metric: "limiter",
			Kind: "changed", At: time.Date(2026, 5, 1, 14, 5, 0, 0, time.UTC), Old: "bottleneck", New: "receiver-window"})
	}
	alerts := h.group("t", events, cells)
	if len(alerts) != 1 || alerts[0].Cause != (mesh.Cause{Kind: mesh.HostReceives, Name: "fra-2"}) {
		t.Fatalf("%+v", alerts)
	}
	text := alerts[0].String()
	for _, want := range []string{"3 of 3 paths into host fra-2: limiter receiver-window\n",
		"ber-1 → fra-2: limiter receiver-window since 14:05, bottleneck before"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if to := h.alertTargets(alerts[0]); len(to) != 3 {
		t.Errorf("%d alerts of the mesh file match, want all three: %+v", len(to), to)
	}
}

func TestAlert_SingleChange(t *testing.T) {
	h, cells := alertHub(t)
	alerts := h.group("t", []store.Event{{Run: "r", Task: "t", Sender: "a", Receiver: "b", Metric: "goodput", Kind: "dip",
		Old: "100 Mbit/s", New: "50 Mbit/s"}}, cells)
	if len(alerts) != 1 || alerts[0].Cause != (mesh.Cause{}) || len(alerts[0].Events) != 1 {
		t.Fatalf("%+v", alerts)
	}
	to := h.alertTargets(alerts[0])
	if len(to) != 1 || to[0].Webhook != "https://a.example" {
		t.Errorf("a dip inside Frankfurt is sent to %+v", to)
	}
}
