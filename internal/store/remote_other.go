//go:build !linux

package store

// remote cannot be told here.
func remote(string) bool { return false }
