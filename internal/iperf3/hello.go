package iperf3

import "crypto/sha256"

// Each UDP stream begins with a hello and a reply. iperf3 before 3.12 sent them in the byte order of the sender.
var (
	helloBytes      = [4]byte{'9', '8', '7', '6'}
	helloReplyBytes = [4]byte{'6', '7', '8', '9'}
	oldHellos       = [][4]byte{{0x15, 0xCD, 0x5B, 0x07}, {0x07, 0x5B, 0xCD, 0x15}}
	helloReplies    = [][4]byte{helloReplyBytes, {0xB1, 0x68, 0xDE, 0x3A}, {0x3A, 0xDE, 0x68, 0xB1}}
)

// HelloReply returns the reply to a stream's first datagram, in the same dialect. ok is false if it is no hello.
func HelloReply(datagram []byte) (answer [4]byte, ok bool) {
	if len(datagram) != 4 {
		return answer, false
	}
	switch hello := [4]byte(datagram); hello {
	case helloBytes:
		return helloReplyBytes, true
	case oldHellos[0]:
		return helloReplies[1], true
	case oldHellos[1]:
		return helloReplies[2], true
	}
	return answer, false
}

// mark returns the bytes after the hello in tests with Params.Marked. Only hosts that know the cookie can compute
// it, so other hosts cannot open a stream of the test. A marked hello stays shorter than any datagram of a test,
// so a late duplicate is never counted.
func mark(cookie Cookie) []byte {
	sum := sha256.Sum256(cookie[:])
	return sum[:7]
}

// IsHelloReply reports whether a datagram is a server's reply, in any dialect.
func IsHelloReply(datagram []byte) bool {
	if len(datagram) != 4 {
		return false
	}
	for _, known := range helloReplies {
		if [4]byte(datagram) == known {
			return true
		}
	}
	return false
}
