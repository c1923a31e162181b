package plan_test

import (
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/plan"
)

// A plan for a path and a system: the window and its settings.
func ExampleNew() {
	target, _ := plan.ParseTarget("windows-2000")
	p, err := plan.New(plan.Path{RateBps: 100e6, RTT: 40 * time.Millisecond, MSS: 1460}, target,
		plan.Options{Role: plan.Receiver})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.WindowBytes)
	for _, s := range p.Settings {
		fmt.Println(s.Name, "=", s.Value)
	}
	// Output:
	// 502240
	// Tcp1323Opts = 1
	// TcpWindowSize = 502240
	// GlobalMaxTcpWindowSize = 502240
}
