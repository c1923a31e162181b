//go:build !linux

package host

// ReleaseCode does nothing on this system.
func ReleaseCode() {}
