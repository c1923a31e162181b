//go:build linux

package commands

import (
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// dotted matches a possible IPv4 address with its prefix length.
var dotted = regexp.MustCompile(`[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+(/[0-9]+)?`)

// TestWatchRecordsNetworksAlone records a lab's connections, with addresses shown and without: the history lists the
// record, for its owner alone, and has networks but no address.
func TestWatchRecordsNetworksAlone(t *testing.T) {
	t.Parallel()
	program := harness.Program(t)
	dir := t.TempDir()
	history := "FULLPIPE_HISTORY=" + dir
	shown := string(harness.RunWatched(t, "rate=30mbit,rtt=20ms", "drain", "pour", `CLIENT & client=$!
moving
$F watch --for 3s --every 1s --record --label kind=test --port 7000 >/dev/null
$F watch --for 3s --every 1s --record --anonymize --port 7000 --json
kill $client`, history))
	for _, a := range dotted.FindAllString(shown, -1) {
		if !strings.HasPrefix(a, "240.0.") {
			t.Errorf("--anonymize shows %s", a)
		}
	}
	if !strings.Contains(shown, `"remote": "240.0.1.2:7000"`) || !strings.Contains(shown, `"anonymized": true`) {
		t.Errorf("the far end is not shown under a made-up address: %s", shown)
	}
	info, err := os.Stat(filepath.Join(dir, "history.db"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	say := func(args ...string) string {
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), history)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
	list := say("history")
	if strings.Count(list, "  watch  ") != 2 || !strings.Contains(list, "this host's connections") ||
		!strings.Contains(list, "kind=test") || strings.Contains(list, "interrupted") {
		t.Errorf("the history lists\n%s", list)
	}
	kept := say("history", "export")
	for _, a := range dotted.FindAllString(kept, -1) {
		if p, err := netip.ParsePrefix(a); err != nil || p.Bits() != 24 || p.Masked() != p {
			t.Errorf("%s is kept, which is no network", a)
		}
	}
	for line := range strings.Lines(kept) {
		var doc struct {
			Outcome    string
			Anonymized bool
			Minutes    []struct {
				LengthS float64 `json:"length_s"`
				Groups  []struct {
					Owner, Network string
					Port           int
					Directions     []struct {
						Direction string
						Bytes     int64
						Shares    map[string]float64
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(line), &doc); err != nil {
			t.Fatal(err)
		}
		if len(doc.Minutes) != 1 || len(doc.Minutes[0].Groups) != 1 || doc.Outcome != "done" {
			t.Fatalf("%s", line)
		}
		g := doc.Minutes[0].Groups[0]
		if !strings.HasPrefix(g.Owner, "python") || g.Port != 7000 || len(g.Directions) != 1 ||
			doc.Anonymized != strings.HasPrefix(g.Network, "240.") {
			t.Errorf("%+v", g)
		}
		sum := 0.0
		for _, share := range g.Directions[0].Shares {
			sum += share
		}
		if d := g.Directions[0]; d.Direction != "up" || d.Bytes < 1e6 || sum < 0.999 || sum > 1.001 {
			t.Errorf("%+v", d)
		}
	}
}
