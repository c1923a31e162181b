package cli

import (
	"strings"
	"testing"
)

// TestGuards_RefuseEmptyNames: a server whose token, keys or certificate come from a shell's variable that is
// not set does not start without them.
func TestGuards_RefuseEmptyNames(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"serve", "--listen", "127.0.0.1:0", "--web", "127.0.0.1:0", "--web-token-file", ""},
		{"serve", "--listen", "127.0.0.1:0", "--web", "127.0.0.1:0", "--web-cert", "", "--web-key", ""},
		{"serve", "--listen", "127.0.0.1:0", "--keys", ""},
		{"watch", "--listen", "127.0.0.1:0", "--listen-token-file", ""},
		{"recheck", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--listen-token-file", ""},
		{"ui", "--no-open", "--listen-operator-token-file", ""},
		{"iperf3", "-s", "-p", "0", "--rsa-private-key-path", "", "--authorized-users-path", ""},
	} {
		status, errs := ended(t, program(t, args...))
		if status == 0 || !strings.Contains(errs, "names no file") { // iperf3 has a status of its own
			t.Errorf("%q: status %d: %s", args, status, errs)
		}
	}
}
