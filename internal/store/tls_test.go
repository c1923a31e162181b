package store

import (
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestOpenAt_TLSRequired: with TLS in the URL, the client sends nothing to a server without TLS or with an
// untrusted certificate.
func TestOpenAt_TLSRequired(t *testing.T) {
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	for _, c := range []struct {
		mode  string
		hasIt byte // server's reply to the TLS request
		want  string
	}{{"require", 'N', "TLS"}, {"verify-full", 'N', "TLS"}, {"verify-full", 'S', "certificate"}} {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		said := make(chan string, 1)
		go func() {
			conn, err := l.Accept()
			if err != nil {
				said <- err.Error()
				return
			}
			defer conn.Close()
			io.ReadFull(conn, make([]byte, 8)) // SSLRequest
			conn.Write([]byte{c.hasIt})
			if c.hasIt == 'S' {
				conn = tls.Server(conn, &tls.Config{Certificates: web.TLS.Certificates})
			}
			rest, _ := io.ReadAll(conn)
			said <- string(rest)
		}()
		s, err := OpenAt(t.Context(), t.TempDir(), "postgres://u:s3cr3t@"+l.Addr().String()+"/d?sslmode="+c.mode)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.List(t.Context(), Filter{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %c: %v", c.mode, c.hasIt, err)
		}
		if rest := <-said; rest != "" {
			t.Errorf("%s, %c: it received %q", c.mode, c.hasIt, rest)
		}
		s.Close()
		l.Close()
	}
}
