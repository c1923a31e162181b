//go:build !linux

package probe

const systemOptions = false
