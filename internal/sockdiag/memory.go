package sockdiag

import "bytes"

// memoryShort reads from /proc/net/protocols whether TCP is under memory pressure: the fifth word of a protocol's line
// is "yes" or "no", below a header with the words' names (sock_prot_memory_pressure, net/core/sock.c). IPv4 and IPv6
// share the accounting, which is the host's in every network namespace.
func memoryShort(text []byte) (short bool) {
	const name, press = 0, 4
	for line := range bytes.Lines(text) {
		words := bytes.Fields(line)
		if len(words) <= press {
			continue
		}
		switch string(words[name]) {
		case "protocol":
			if string(words[press]) != "press" {
				return false
			}
		case "TCP", "TCPv6":
			short = short || string(words[press]) == "yes"
		}
	}
	return short
}
