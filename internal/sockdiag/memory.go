package sockdiag

import "bytes"

// memoryShort reads, of /proc/net/protocols, whether TCP is under memory pressure: of a protocol's line the
// fifth word is "yes" or "no", and the table is headed by the words' names (sock_prot_memory_pressure,
// net/core/sock.c). IPv4 and IPv6 share the account. It is the host's, whatever network namespace asks.
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
