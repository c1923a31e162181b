//go:build linux && !amd64

package hostile

import "errors"

// wallClockProgram knows the registers of one kind of processor.
func wallClockProgram() error { return errors.New("a wall clock is faked on amd64 only") }
