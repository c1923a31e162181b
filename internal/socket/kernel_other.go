//go:build !linux && !windows

package socket

import "runtime"

func kernel() string { return runtime.GOOS }
