package watch

import (
	"net/netip"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/waits"
)

// TestWatcher_WaitsArePseudonymous checks that a wait for a far end has the pseudonym that its connection has, and that
// a file server's name is left out.
func TestWatcher_WaitsArePseudonymous(t *testing.T) {
	w := newWatcher(Config{Anonymize: true})
	defer w.programs.watch.Close()
	c := &Connection{}
	c.Local = netip.MustParseAddrPort("198.51.100.1:40000")
	c.Remote = netip.MustParseAddrPort("192.0.2.7:443")
	shown := w.account.names.connection(c)
	all := w.programs.hidden([]waits.Wait{{Place: waits.Place{Kind: waits.Peer, Object: "192.0.2.7:443"}},
		{Place: waits.Place{Kind: waits.Disk, Object: "files.example.net:/home"}},
		{Place: waits.Place{Kind: waits.Disk, Object: "/dev/sda1"}}})
	if all[0].Object != shown.Remote.String() || all[1].Object != "" || all[2].Object != "/dev/sda1" {
		t.Errorf("%+v, want %v", all, shown.Remote)
	}
}
