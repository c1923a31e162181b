package sockdiag

import "os"

// MemoryShort reports whether the kernel's TCP is short of memory now (net.ipv4.tcp_mem): it grows no buffer then,
// closes windows and drops segments, for all connections of the host. It returns false where that is not known.
func MemoryShort() bool {
	text, err := os.ReadFile("/proc/net/protocols")
	return err == nil && memoryShort(text)
}
