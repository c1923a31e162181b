package text

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestPlan_ProgramBoundsNow checks that the present goodput is never above the expected one where a program's window
// limits both.
func TestPlan_ProgramBoundsNow(t *testing.T) {
	d := &record.Plan{RateBps: 400e6, MSSBytes: 1460, RTTS: 0.05, ExpectedGoodputBps: 388e6,
		Now: &plan.Now{GoodputBps: 388e6, Limiter: verdict.Bottleneck},
		App: &record.PlanApp{AllowsBps: 110e6, FillsRatio: 0.28}}
	var out strings.Builder
	Plan(&out, d)
	for _, line := range []string{"110 Mbit/s", "limited by the program's window"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, out.String())
		}
	}
	if strings.Contains(out.String(), "388 Mbit/s") {
		t.Errorf("more than the program's window allows:\n%s", out.String())
	}
}
