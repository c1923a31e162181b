package advice_test

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// The steps against a policer, in order.
func ExampleFor() {
	for _, step := range advice.For(verdict.Congestion, verdict.Policer) {
		fmt.Println(step.Action, step.Scope, step.End, step.Tried)
	}
	// Output:
	// pace-below program sender true
	// congestion-control program sender true
	// window-of-bdp program receiver true
	// streams program both true
	// replace-policer network path false
}
