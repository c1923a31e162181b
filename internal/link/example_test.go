package link_test

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Parse reads a description; omitted keys have defaults.
func ExampleParse() {
	path, err := link.Parse("rate=20mbit,rtt=40ms,loss=0.1%,queue=2bdp,down.rate=100mbit")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(units.Rate(path.Up.Rate), units.Rate(path.Down.Rate), units.Time(path.RTT),
		units.Size(path.Up.QueueBytes).Exact())
	// Output: 20 Mbit/s 100 Mbit/s 40 ms 200,000 bytes
}

// An error names the argument and a valid value.
func ExampleParse_mistake() {
	_, err := link.Parse("rate=20mbit,rt=40ms")
	fmt.Println(err)
	// Output: rt: unknown key
}
