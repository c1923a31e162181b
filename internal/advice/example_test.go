package advice_test

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// The steps against a policer, in order.
func ExampleFor() {
	for _, step := range advice.For(verdict.Congestion, verdict.Policer) {
		fmt.Println(step.Action, step.Scope, step.End)
	}
	// Output:
	// pace-below program sender
	// congestion-control program sender
	// window-of-bdp program receiver
	// streams program both
	// replace-policer network path
}
