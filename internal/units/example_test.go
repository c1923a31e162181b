package units_test

import (
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Rates are bits per second, sizes bytes; kB is 1000 bytes and KiB 1024.
func Example() {
	rate, _ := units.ParseRate("100mbit")
	size, _ := units.ParseSize("64KiB")
	fmt.Println(rate, "|", size, "|", size.Exact(), "|", units.Time(1500*time.Microsecond))
	// Output: 100 Mbit/s | 64 KiB | 65,536 bytes | 1.5 ms
}

// The error for an ambiguous number lists both meanings.
func ExampleParseRate() {
	_, err := units.ParseRate("100")
	fmt.Println(err)
	// Output: rate "100": 100 bit/s or 100 Mbit/s? (write it as 100bit or 100mbit)
}
