package watch

import (
	"os"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
)

// readCeilings reads the ceilings of automatic buffers in a network namespace, as /proc/PID/ns/net; "" is this
// process's.
func readCeilings(namespace string) (c ceilings) {
	read := func() error {
		c.send = thirdValue("/proc/sys/net/ipv4/tcp_wmem")
		c.receive = thirdValue("/proc/sys/net/ipv4/tcp_rmem")
		return nil
	}
	if namespace == "" {
		_ = read()
	} else {
		_ = sockdiag.InNamespace(namespace, read) // where it cannot be entered, nothing is known
	}
	return c
}

// thirdValue returns the last of a setting's three values; 0: not known.
func thirdValue(file string) int64 {
	text, err := os.ReadFile(file)
	fields := strings.Fields(string(text))
	if err != nil || len(fields) != 3 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[2], 10, 64)
	return n
}
