package diagnose

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// TestSetTarget checks that a stated system replaces the one that the handshake gives evidence of, in the settings of
// the end that limits and in the remedy.
func TestSetTarget(t *testing.T) {
	for _, c := range []struct{ target, setting string }{
		{"windows-11", "AutoTuningLevelLocal"},
		{"windows-2000", "TcpWindowSize"},
		{"windows-nt4", "TcpWindowSize"},
	} {
		d := New(analyzed(t, "rwnd-stuck.near"), 100_000)
		d.SetTarget(c.target)
		var all []record.CapturedSettings
		for _, connection := range d.Record.Connections {
			for _, direction := range connection.Directions {
				all = append(all, direction.Settings...)
			}
		}
		if len(all) != 1 || all[0].Target != c.target {
			t.Errorf("%s: %+v", c.target, all)
			continue
		}
		names := ""
		for _, s := range all[0].Settings {
			names += s.Name + " "
		}
		if !strings.Contains(names, c.setting) {
			t.Errorf("%s: %s", c.target, names)
		}
	}
}
