package listener

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

// TestIsOwnName_Rebinding lets pages of other sites, with names that resolve to this host, open a
// WebSocket of the speed test and send a result: Host and Origin agree, and both are foreign.
func TestIsOwnName_Rebinding(t *testing.T) {
	own := must.Get(os.Hostname())(t)
	hosts := []string{"speed.example.net", "*.corp.example"}
	pages := web.NewPublic(web.NewSpeed(web.SpeedConfig{Version: "test", Origins: hosts,
		Ours: func(r *http.Request) bool { return IsOwnName(r, hosts) }}), "")
	for host, ours := range map[string]bool{"attacker.example": false, "attacker.example:8080": false,
		"127.0.0.1.attacker.example": false, "localhost.attacker.example": false, own + ".attacker.example": false, "": false,
		"127.0.0.1:8080": true, "[::1]:8080": true, "192.0.2.7": true, "localhost:8080": true, own + ":8080": true,
		"speed.example.net:8080": true, "a.corp.example": true} {
		for i, one := range []struct{ method, path string }{{"GET", "/ndt/v7/download"}, {"GET", "/ndt/v7/upload"},
			{"POST", "/test/x"}} {
			r := httptest.NewRequest(one.method, one.path, http.NoBody)
			r.Host = host
			r.RemoteAddr = fmt.Sprintf("198.51.100.%d:1", i)
			r.Header.Set("Origin", "http://"+host)
			w := httptest.NewRecorder()
			pages.ServeHTTP(w, r)
			if refused := w.Code == http.StatusMisdirectedRequest; refused == ours {
				text, _ := io.ReadAll(w.Body)
				t.Errorf("%s %s at %q: %d %.100s", one.method, one.path, host, w.Code, text)
			}
		}
	}
}
