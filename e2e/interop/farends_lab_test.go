//go:build linux

package interop

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
)

// TestDownloads_OverALink checks what a busy machine cannot change: bytes arrive, never faster than the link
// carries, and HTTP/2 is named. The verdicts are checked in bench/live.
func TestDownloads_OverALink(t *testing.T) {
	t.Parallel()
	l, env := harness.StartWebSite(t, "rate=20mbit,rtt=40ms,queue=1bdp")
	for _, c := range []struct {
		name, url string
		args      []string
		http2     bool
	}{
		{"plain", "http://HOST/object", nil, false},
		{"a redirect", "http://HOST/moved", nil, false},
		{"TLS", "https://HOST:444/object", nil, false},
		{"HTTP/2", "https://HOST/object", nil, true},
		{"a small receive buffer", "http://HOST/object", []string{"--receive-buffer", "16KiB"}, false},
		{"a small send buffer", "http://HOST:81/object", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := strings.Replace(c.url, "HOST", lab.FarAddr.String(), 1)
			var doc harness.MeasureDoc
			harness.RunJSON(t, l.Near, &doc, env, append([]string{"measure", url, "--json", "-t", "1s"}, c.args...)...)
			if len(doc.Directions) != 1 {
				t.Fatalf("%+v", doc)
			}
			d := doc.Directions[0]
			if d.Bytes == 0 || d.GoodputBps <= 0 || d.GoodputBps > 20e6 {
				t.Errorf("%d bytes at %.4g bit/s over a link of 20 Mbit/s", d.Bytes, d.GoodputBps)
			}
			named := slices.ContainsFunc(d.Warnings, func(w string) bool { return strings.Contains(w, "HTTP/2") })
			if named != c.http2 {
				t.Errorf("HTTP/2 in the warnings: %v; want %v: %q", named, c.http2, d.Warnings)
			}
		})
	}
}

// TestSSHOverALink has the system's ssh start a server at the other end of a link, also behind a jump host. The
// copied program is deleted afterwards. The error names a data port that a firewall closes, and ssh's own connection
// is the remedy.
func TestSSHOverALink(t *testing.T) {
	t.Parallel()
	l, _ := harness.StartLab(t, "rate=200mbit,rtt=20ms")
	site, sshd := harness.NewSSHFiles(t, lab.FarAddr.String(), 22)
	server, err := l.Far.Start(lab.Command{Args: []string{sshd, "-D", "-e", "-f", site.Path("sshd.conf")}})
	if err != nil {
		t.Fatal(err)
	}
	l.Far.AwaitListener(t.Context(), server)
	measure := func(args ...string) (doc harness.MeasureDoc) {
		t.Helper()
		harness.RunJSON(t, l.Near, &doc, site.Env, append([]string{"measure", "--json", "--bytes", "400kB",
			"--write-rate", "10mbit"},
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
