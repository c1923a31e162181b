//go:build linux

package harness

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/lab"
)

// HostSettings returns all settings of a lab's host that `tune` may change: sysctls, routes and qdiscs without
// their handles.
func HostSettings(t *testing.T, e *lab.End) string {
	t.Helper()
	out, err := e.Output("sh", "-c",
		SysctlFunction+`sysctls; ip -j route; ip -6 -j route; tc -j qdisc | sed 's/"handle":"[^"]*",//g'`)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// AddedLines returns the lines of after that before does not have.
func AddedLines(before, after string) string {
	var lines []string
	for line := range strings.Lines(after) {
		if !strings.Contains(before, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// SysctlFunction is a shell function that prints every sysctl of the namespace, byte for byte.
const SysctlFunction = `sysctls() { for f in $(find /proc/sys/net -type f | sort); do
	printf '%s ' "$f"; cat "$f" 2>/dev/null || echo
done; }
`
