//go:build linux

package harness

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

// ServePages serves the pages of a history in this process. It returns the site and the URL that opens it.
func ServePages(t testing.TB, s *store.Store) (site *httptest.Server, open string) {
	t.Helper()
	const token = "a token for tests alone"
	pages := web.New(web.Config{History: s, Version: "test", Opening: token,
		Ours:  func(*http.Request) bool { return true },
		Speed: web.NewSpeed(web.SpeedConfig{Kept: s.Document}),
		Watch: func(ctx context.Context, each func(*printed.Watch)) error {
			each(&printed.Watch{LengthS: 2, Standing: 7, Connections: []printed.WatchedConnection{{
				Program: "<b>rsync</b>\u202e", PID: 4711, Local: "192.0.2.1:40000", Remote: "198.51.100.7:22",
				Directions: []printed.WatchedDirection{{Direction: transfer.Up, GoodputBps: 93e6,
					Verdict: verdict.Verdict{Limiter: verdict.ReceiverWindow, Confidence: verdict.High,
						Shares: verdict.Shares{verdict.ReceiverWindow: 0.9, verdict.Bottleneck: 0.1}}}}}},
				Limited: []printed.WatchLimited{{Limiter: verdict.ReceiverWindow, Direction: transfer.Up, Bytes: 23e6,
					Connections: 1}}})
			<-ctx.Done()
			return nil
		}})
	site = httptest.NewServer(pages)
	t.Cleanup(func() { site.CloseClientConnections(); site.Close(); pages.Close() })
	return site, site.URL + "/open?token=" + url.QueryEscape(token)
}
