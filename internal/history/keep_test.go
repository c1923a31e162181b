package history

import (
	"runtime"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// TestNewEnvelope_SettingsOfMeasuredHostsOnly checks that a capture's document has no settings of this host.
func TestNewEnvelope_SettingsOfMeasuredHostsOnly(t *testing.T) {
	if e := NewEnvelope(&record.Diagnose{}, time.Unix(1e9, 0), time.Second); e.InForce != nil {
		t.Errorf("diagnose: %v", e.InForce)
	}
	e := NewEnvelope(&record.Measure{}, time.Unix(1e9, 0), time.Second)
	if runtime.GOOS == "linux" && len(e.InForce) == 0 {
		t.Error("measure: no settings")
	}
}
