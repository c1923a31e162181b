//go:build linux

package interop

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/download"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// nginxSite is what nginx needs to serve a file of 64 MiB on two loopback ports: plainly,
// and over TLS with HTTP/2.
func nginxSite(t *testing.T) (plain, secure string, roots *x509.CertPool, dir string) {
	t.Helper()
	dir = t.TempDir()
	os.Chmod(dir, 0o755)
	file, err := os.Create(filepath.Join(dir, "object"))
	if err != nil {
		t.Fatal(err)
	}
	file.Truncate(64 << 20)
	file.Close()
	roots = harness.WriteCertificate(t, dir, net.IPv4(127, 0, 0, 1))
	var ports [2]int
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // until nginx is about to take it
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	config := fmt.Sprintf(`daemon off; pid %[1]s/pid; error_log stderr; worker_processes 1; events {}
http { access_log off; client_body_temp_path %[1]s/1; proxy_temp_path %[1]s/2; fastcgi_temp_path %[1]s/3; uwsgi_temp_path %[1]s/4; scgi_temp_path %[1]s/5;
server { listen 127.0.0.1:%[2]d; root %[1]s; location /moved { return 302 /object; } }
server { listen 127.0.0.1:%[3]d ssl http2; ssl_certificate %[1]s/cert.pem; ssl_certificate_key %[1]s/key.pem; root %[1]s; } }`, dir, ports[0], ports[1])
	if os.Getuid() == 0 {
		config = "user root;\n" + config
	}
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("https://127.0.0.1:%d", ports[1]), roots, dir
}

// nginx serves the site until the test ends.
func nginx(t *testing.T) (plain, secure string, roots *x509.CertPool) {
	t.Helper()
	program := testenv.Program(t, testenv.Nginx)
	plain, secure, roots, dir := nginxSite(t)
	var log bytes.Buffer
	cmd := exec.Command(program, "-e", "stderr", "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if r, err := http.Head(plain + "/object"); err == nil {
			r.Body.Close()
			return plain, secure, roots
		}
		if time.Now().After(deadline) {
			t.Fatalf("nginx did not come up: %s", log.String())
		}
	}
}

func TestDownloadsFromNginx(t *testing.T) {
	t.Parallel()
	plain, secure, roots := nginx(t)
	for _, c := range []struct {
		name, address string
		http1         bool
		window        int
	}{
		{"HTTP/1.1", plain + "/object", false, 0},
		{"a redirect", plain + "/moved", false, 0},
		{"a window", plain + "/object", false, 32 << 10},
		{"TLS", secure + "/object", true, 0},
		{"TLS and HTTP/2", secure + "/object", false, 0},
		{"TLS, HTTP/2 and a window", secure + "/object", false, 32 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			far, err := download.Open(t.Context(), c.address, download.Config{HTTP1: c.http1, TLS: &tls.Config{RootCAs: roots}})
			if err != nil {
				t.Fatal(err)
			}
			defer far.Close()
			spec := transfer.Spec{Direction: transfer.Down, Bytes: 4 << 20, Near: transfer.Socket{ReceiveBuffer: c.window}}
			result, err := transfer.Run(t.Context(), far, spec, nil)
			if err != nil {
				t.Fatal(err)
			}
			span, ok := result.Received()
			// The count begins when the request is known to be out: on a busy machine the first read may come before.
			const oneRead = 64 << 10
			if !ok || !result.Complete || span.Bytes < 4<<20-oneRead || span.Bytes > 8<<20 {
				t.Errorf("%d bytes, complete %v", span.Bytes, result.Complete)
			}
			if b := result.Near.Streams[0].ReceiveBuffer; c.window > 0 && (b.Effective == 0 || b.Effective > 2*c.window) {
				t.Errorf("window %+v", b)
			}
		})
	}
}
