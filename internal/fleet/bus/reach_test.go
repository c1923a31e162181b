package bus

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestReach_SaysWhy checks the reasons that need no path of its own: e2e/fleet has the black hole.
func TestReach_SaysWhy(t *testing.T) {
	t.Parallel()
	hub := httptest.NewTLSServer(http.NotFoundHandler())
	defer hub.Close()
	pinned := hub.Client().Transport.(*http.Transport).TLSClientConfig
	silent := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer silent.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for _, c := range []struct{ name, url, want string }{
		{"a hub", hub.URL, ""},
		{"closed", "https://" + closed.Addr().String(), "connection refused"},
		{"silent", "https://" + silent.Addr().String(), "does not begin TLS"},
		{"a NATS server", "nats://127.0.0.1:1", ""},
	} {
		err := Reach(t.Context(), c.url, pinned)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	err = Reach(t.Context(), hub.URL, PinnedTLS("another"))
	if err == nil ||
		!strings.Contains(err.Error(), "not by the hub that made the token") {
		t.Errorf("another hub: %v", err)
	}
	reached, err := ReachAny(t.Context(), []string{"https://" + closed.Addr().String(), hub.URL}, pinned)
	if err == nil || len(reached) != 1 || reached[0] != hub.URL {
		t.Errorf("%v is reached, %v", reached, err)
	}
}

func TestUsable(t *testing.T) {
	for text, want := range map[string]bool{"https://hub.example.net:8443": true, "nats://10.0.0.1:4222": true,
		"https://[2001:db8::1]:8443": true, "http://hub": false, "https://": false, "file:///etc/passwd": false,
		"https://0.0.0.0:1": false, "https://224.0.0.1:1": false, "": false, "https://" + strings.Repeat("a", 300): false} {
		if usable(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
