package ndt7

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// A server's redirects are not followed.
func TestClient_IgnoresRedirects(t *testing.T) {
	var asked atomic.Int64
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer inside.Close()
	site := httptest.NewServer(http.RedirectHandler(inside.URL+DownloadPath, http.StatusFound))
	defer site.Close()
	p := NewPeer(site.Listener.Addr().String())
	defer p.Close()
	_, err := transfer.Run(t.Context(), p, transfer.Spec{Direction: transfer.Down, Time: time.Second}, nil)
	var no *NoServer
	if !errors.As(err, &no) || no.Status != http.StatusFound || !strings.Contains(no.Try(), "sends its clients") {
		t.Errorf("%v", err)
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("it was followed %d times", n)
	}
}

// Impossible counts are left out of an upload's result.
func TestClient_IgnoresImpossibleCounts(t *testing.T) {
	const sent, ago = 10 << 20, 5 * time.Second
	at := func(d time.Duration) int64 { return d.Microseconds() }
	for _, tt := range []struct {
		name string
		a    AppInfo
		want bool
	}{
		{"received bytes", AppInfo{at(3 * time.Second), 9 << 20}, true},
		{"a write in progress", AppInfo{at(3 * time.Second), sent + 1<<19}, true},
		{"more than was sent", AppInfo{at(3 * time.Second), 3 * sent}, false},
		{"less than before", AppInfo{at(3 * time.Second), 1 << 10}, false},
		{"the far future", AppInfo{at(time.Hour), 9 << 20}, false},
		{"the past", AppInfo{-1, 9 << 20}, false},
		{"a moment after the last", AppInfo{at(2*time.Second) + 1, 9 << 20}, false},
	} {
		c := &client{conn: &Conn{out: ioCounts{bytes: sent}}, started: time.Now().Add(-ago),
			counted: AppInfo{at(2 * time.Second), 1 << 20}}
		if got := c.isPlausible(&tt.a); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
