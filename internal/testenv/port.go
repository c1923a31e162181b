package testenv

import (
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// A port from "listen on 0, then close" lies in the kernel's ephemeral range, so any connection
// made before the server starts may take it. The range ends below the ephemeral ports of Linux
// (32768), macOS and Windows (49152).
const (
	firstPort = 10000
	lastPort  = 31999
)

var (
	mu   sync.Mutex
	next = firstPort + rand.IntN(lastPort-firstPort) // test binaries run side by side
)

// FreePort returns the first of n consecutive ports that are free for TCP and UDP on all addresses.
// It never returns a port twice in one process.
func FreePort(t testing.TB, n int) int {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	for range lastPort - firstPort {
		if next+n > lastPort {
			next = firstPort
		}
		first := next
		used := firstUsed(first, n)
		if used < 0 {
			next += n
			return first
		}
		next = used + 1
	}
	t.Fatalf("no %d consecutive free ports from %d to %d", n, firstPort, lastPort)
	return 0
}

// firstUsed returns the first port that somebody else has, or -1.
func firstUsed(first, n int) int {
	for port := first; port < first+n; port++ {
		address := net.JoinHostPort("", strconv.Itoa(port))
		l, err := net.Listen("tcp", address)
		if err != nil {
			return port
		}
		defer l.Close()
		c, err := net.ListenPacket("udp", address)
		if err != nil {
			return port
		}
		defer c.Close()
	}
	return -1
}
