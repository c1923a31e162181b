//go:build !linux && !darwin

package socket

func bindDevice(uintptr, string, bool) error { return notSupported("binding to an interface") }
