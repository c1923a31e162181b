package sockdiag

import "os"

// MemoryShort says whether the kernel's TCP is short of memory now (net.ipv4.tcp_mem): it grows no buffer
// then, closes windows and drops segments, of all connections of the host. False where nothing tells.
func MemoryShort() bool {
	text, err := os.ReadFile("/proc/net/protocols")
	return err == nil && memoryShort(text)
}
