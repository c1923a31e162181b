//go:build linux

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/lab/still"
)

// judged is what the tests below read of `measure --json`.
type judged struct {
	Directions []struct {
		GoodputBps float64 `json:"goodput_bps"`
		Bytes      int64
		Limiter    string
		Confidence string
		Candidates []string
		Warnings   []string
		Shares     map[string]float64
	}
	Error struct{ Message, Try string }
}

// runJSON runs a fullpipe command at an end of a lab and reads what it prints.
func runJSON(t *testing.T, e *lab.End, doc any, env []string, args ...string) {
	t.Helper()
	program := harness.Program(t)
	var out, problems bytes.Buffer
	if _, err := e.Run(lab.Command{Args: append([]string{program}, args...), Env: env, Stdout: &out,
		Stderr: &problems}); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), doc); err != nil {
		t.Fatalf("%v: %v: %s%s", args, err, out.String(), problems.String())
	}
}

// webSite is a lab with nginx at its far end: plainly on port 80, over TLS with HTTP/2 on
// 443, without it on 444, and with a send buffer of 16 KiB on 81.
func webSite(t *testing.T, path string) (l *lab.Lab, env []string) {
	t.Helper()
	nginx := harness.NeedProgram(t, "nginx", "/usr/sbin/nginx")
	l, _ = harness.StartLab(t, path)
	dir := t.TempDir()
	harness.WriteCertificate(t, dir, net.ParseIP(lab.FarAddr.String()))
	os.Chmod(dir, 0o755)
	file, err := os.Create(filepath.Join(dir, "object"))
	if err != nil {
		t.Fatal(err)
	}
	file.Truncate(64 << 20)
	file.Close()
	tls := fmt.Sprintf("ssl_certificate %[1]s/cert.pem; ssl_certificate_key %[1]s/key.pem; root %[1]s;", dir)
	config := fmt.Sprintf(`user root; daemon off; pid %[1]s/pid; error_log stderr; worker_processes 1; events {}
http { access_log off; client_body_temp_path %[1]s/1; proxy_temp_path %[1]s/2; fastcgi_temp_path %[1]s/3; uwsgi_temp_path %[1]s/4; scgi_temp_path %[1]s/5;
server { listen 80; root %[1]s; location /moved { return 302 /object; } }
server { listen 81 sndbuf=16k; root %[1]s; }
server { listen 443 ssl http2; %[2]s }
server { listen 444 ssl; %[2]s } }`, dir, tls)
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := l.Far.Start(lab.Command{Args: []string{nginx, "-e", "stderr", "-p", dir, "-c",
		filepath.Join(dir, "nginx.conf")}, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	l.Far.AwaitListener(t.Context(), server)
	return l, []string{"SSL_CERT_FILE=" + filepath.Join(dir, "cert.pem")}
}

// A download's own receive window, the server's send buffer and the path, told apart as
// far as a receiver can.
func TestDownloadsOverALink(t *testing.T) {
	t.Parallel()
	l, env := webSite(t, "rate=20mbit,rtt=40ms,queue=1bdp")
	for _, c := range []struct {
		name, url string
		args      []string
		window    bool    // limits
		atMost    float64 // bit/s
	}{
		{"the path", "http://HOST/object", nil, false, 20e6},
		{"a redirect", "http://HOST/moved", nil, false, 20e6},
		{"TLS", "https://HOST:444/object", nil, false, 20e6},
		{"HTTP/2", "https://HOST/object", nil, false, 20e6},
		{"a window", "http://HOST/object", []string{"--receive-buffer", "16KiB"}, true, 5e6},
		{"a window, HTTP/2", "https://HOST/object", []string{"--receive-buffer", "32KiB"}, true, 10e6},
		{"the server's send buffer", "http://HOST:81/object", nil, false, 15e6},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := strings.Replace(c.url, "HOST", lab.FarAddr.String(), 1)
			still.Undisturbed(t, func() error {
				var doc judged
				runJSON(t, l.Near, &doc, env, append([]string{"measure", url, "--json", "-t", "1s"}, c.args...)...)
				if len(doc.Directions) != 1 {
					return fmt.Errorf("%+v", doc)
				}
				d := doc.Directions[0]
				if share := d.Shares["receiver-window"]; d.Bytes == 0 || d.GoodputBps > c.atMost || c.window != (share > 0.3) {
					return fmt.Errorf("%+v", d)
				}
				// What only the sender could tell apart stays open, and nothing else.
				if !c.window && (d.Limiter != "unknown" || slices.Contains(d.Candidates, "receiver-window") ||
					!slices.Contains(d.Candidates, "send-buffer") || !slices.Contains(d.Candidates, "bottleneck")) {
					return fmt.Errorf("%s, candidates %v", d.Limiter, d.Candidates)
				}
				over2 := slices.ContainsFunc(d.Warnings, func(w string) bool { return strings.Contains(w, "HTTP/2") })
				if want := strings.Contains(c.name, "HTTP/2"); over2 != want {
					return fmt.Errorf("over HTTP/2: %v; warnings %q", over2, d.Warnings)
				}
				return nil
			})
		})
	}
}

// The system's ssh starts a server at the other end of a link, also behind a jump host;
// what it copies there is gone afterwards; a data port that a firewall closes is named,
// and ssh's own connection is the way out.
func TestSSHOverALink(t *testing.T) {
	t.Parallel()
	l, _ := harness.StartLab(t, "rate=200mbit,rtt=20ms")
	site, sshd := harness.NewSSHFiles(t, lab.FarAddr.String(), 22)
	server, err := l.Far.Start(lab.Command{Args: []string{sshd, "-D", "-e", "-f", site.Path("sshd.conf")}})
	if err != nil {
		t.Fatal(err)
	}
	l.Far.AwaitListener(t.Context(), server)
	measure := func(args ...string) (doc judged) {
		t.Helper()
		runJSON(t, l.Near, &doc, site.Env, append([]string{"measure", "--json", "-t", "300ms", "--write-rate", "10mbit"},
			args...)...)
		return doc
	}
	works := func(args ...string) {
		t.Helper()
		if doc := measure(args...); len(doc.Directions) != 1 || doc.Directions[0].Bytes == 0 {
			t.Errorf("%v: %+v", args, doc)
		} else if tunnelled := slices.ContainsFunc(doc.Directions[0].Warnings,
			func(w string) bool { return strings.Contains(w, "through ssh") }); tunnelled != (args[0] == "--tunnel") {
			t.Errorf("%v: warnings %q", args, doc.Directions[0].Warnings)
		}
	}
	works("--copy", "ssh://far")
	site.AwaitEmpty(t)
	program := harness.Program(t)
	if err := os.Symlink(program, site.Path("far/fullpipe")); err != nil {
		t.Fatal(err)
	}
	works("ssh://far")
	works("-d", "down", "ssh://far")
	works("ssh://behind")
	// A firewall at the far end, in the words of the routing tables.
	const firewall = "ip rule add pref 10 lookup local; ip rule del pref 0; ip rule add pref 1 iif lab0 ipproto tcp " +
		"dport 1024-65534 prohibit"
	if _, err := l.Far.Output("sh", "-ec", firewall); err != nil {
		t.Fatal(err)
	}
	if doc := measure("ssh://far"); !strings.Contains(doc.Error.Message, "cannot be reached from here") ||
		!strings.Contains(doc.Error.Try, "--tunnel") {
		t.Errorf("behind a firewall: %+v", doc)
	}
	works("--tunnel", "ssh://far")
	works("--tunnel", "-d", "down", "ssh://behind")
}
