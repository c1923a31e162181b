package diagnose

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestSetTarget checks that a stated system replaces the one that the handshake gives evidence of, in the settings of
// the end that limits and in the remedy.
func TestSetTarget(t *testing.T) {
	for _, c := range []struct {
		target, setting string
		words           advice.System // of the remedy
	}{
		{"windows-11", "", advice.Windows},
		{"windows-7", "ScalingHeuristics", advice.Windows10},
		{"windows-2000", "TcpWindowSize", advice.Windows2000},
		{"windows-nt4", "TcpWindowSize", advice.Windows2000},
		{"freebsd", "", advice.FreeBSD},
		{"linux-5.4", "", advice.Linux},
	} {
		d := New(analyzed(t, "rwnd-stuck.near"), 100_000)
		d.SetTarget(c.target)
		var all []record.CapturedSettings
		for _, connection := range d.Record.Connections {
			for _, direction := range connection.Directions {
				all = append(all, direction.Settings...)
				for _, fix := range direction.Fix {
					if direction.Limiter == verdict.ReceiverWindow && fix.Action == advice.RaiseCeilings && fix.System != c.words {
						t.Errorf("%s: %s in the words of %q", c.target, fix.Action, fix.System)
					}
				}
			}
		}
		if c.setting == "" { // the system's own sizes suffice
			continue
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
