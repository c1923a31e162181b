//go:build linux

package kernel

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/probe"
)

// named runs fullpipe at the near end of a lab with a hosts file of its own. At the far end serve listens on the
// given address; the script waits for the address awaited unless it is empty. Packets to any other address there
// vanish.
func named(t *testing.T, listen, awaited, args string) (out string, err error) {
	t.Helper()
	program := harness.Program(t)
	dir := t.TempDir()
	hosts := filepath.Join(dir, "hosts")
	// The preferred family comes first, as the system sorts them (RFC 6724): IPv6 here.
	lines := "2001:2::2 both\n198.18.0.2 both\n2001:2::77 hole6\n198.18.0.2 hole6\n2001:2::2 hole4\n198.18.0.77 hole4\n" +
		"198.18.0.2 only4\n2001:2::77 holes\n198.18.0.77 holes\n"
	if err := os.WriteFile(hosts, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}

	far := "sh -euc 'ip addr add fe80::2/64 dev lab0 nodad; exec " + program + " serve --quiet --listen " + listen + "'"
	near := "ip addr add fe80::1/64 dev lab0 nodad; mount --bind " + hosts + " /etc/hosts; "
	if awaited != "" {
		near += "until (exec 3<>/dev/tcp/" + awaited + "/5201) 2>/dev/null; do sleep 0.02; done; "
	}
	cmd := exec.Command(program, "lab", "rate=20mbit,rtt=10ms", "--far", far, "--", "unshare", "-m", "bash", "-euc",
		near+program+" "+args)
	cmd.Env = append(os.Environ(), "FULLPIPE_KEY="+probe.NewKey().String())
	text, err := cmd.CombinedOutput()
	return string(text), err
}

func TestHappyEyeballsInTheLab(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		listen, peer string
		far          string   // the address that replies; or
		fails        []string // texts of the error
	}{
		"IPv6 preferred, both listen":      {":5201", "both", "2001:2::2", nil},
		"IPv6 preferred, IPv4 listens":     {"198.18.0.2:5201", "both", "198.18.0.2", nil},
		"IPv6 preferred, IPv6 listens":     {"[2001:2::2]:5201", "both", "2001:2::2", nil},
		"IPv6 is a black hole":             {":5201", "hole6", "198.18.0.2", nil},
		"IPv4 is a black hole":             {":5201", "hole4", "2001:2::2", nil},
		"IPv4 asked for":                   {":5201", "both -4", "198.18.0.2", nil},
		"an IPv6 literal with a zone":      {":5201", "[fe80::2%lab0]:5201", "fe80::2%lab0", nil},
		"an iperf3 server with a zone":     {":5201 --iperf3", "iperf3://[fe80::2%lab0] -d down", "fe80::2%lab0", nil},
		"an iperf3 server by a black hole": {":5201 --iperf3", "iperf3://hole6 -d down", "198.18.0.2", nil},
		"IPv6 asked for, only IPv4 there":  {":5201", "only4 -6", "", []string{"only4 has no IPv6 address"}},
		"bound to an IPv4 address":         {":5201", "both --bind $FULLPIPE_NEAR", "198.18.0.2", nil},
		"both are refused": {":5209", "both", "", []string{"2001:2::2: connection refused",
			"198.18.0.2: connection refused"}},
		"one is refused, one a black hole": {":5209", "hole6", "", []string{"2001:2::77: no answer",
			"198.18.0.2: connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := named(t, c.listen, c.far, "measure "+c.peer+" --bytes 100kB --json")
			var doc struct {
				Far   struct{ Address string }
				Error struct{ Message string }
			}
			if bad := json.Unmarshal([]byte(out), &doc); bad != nil {
				t.Fatalf("%v, %v: %s", err, bad, out)
			}
			if doc.Far.Address != c.far {
				t.Errorf("measured with %q, want %q: %s", doc.Far.Address, c.far, doc.Error.Message)
			}
			for _, part := range c.fails {
				if !strings.Contains(doc.Error.Message, part) {
					t.Errorf("%q does not say %q", doc.Error.Message, part)
				}
			}
		})
	}
}
