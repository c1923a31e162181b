package model_test

import (
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
)

// The window in whole segments for 100 Mbit/s at 80 ms, and the
// scale that such a window needs.
func ExampleWindow() {
	bdp := model.BDP(100e6, 80*time.Millisecond)
	window := model.Window(bdp, 1460)
	fmt.Println(bdp, window, window/1460, model.Scale(window))
	// Output: 1e+06 1001560 686 4
}

// The largest goodput of an unscaled window.
func ExampleRate() {
	fmt.Printf("%.2f Mbit/s\n", model.Rate(model.MaxUnscaled, 80*time.Millisecond)/1e6)
	// Output: 6.55 Mbit/s
}

// Reno and CUBIC at 80 ms with a loss of 1 in 100,000 segments.
func ExampleCubic() {
	rtt := 80 * time.Millisecond
	fmt.Printf("Mathis %.1f, CUBIC %.1f Mbit/s\n", model.Mathis(1448, rtt, 1e-5)/1e6, model.Cubic(1448, rtt, 1e-5)/1e6)
	// Output: Mathis 56.1, CUBIC 129.1 Mbit/s
}
