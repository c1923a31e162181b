package iperf3

import "crypto/sha256"

// The four bytes with which a UDP stream introduces itself and is answered. The order
// of the older ones depends on the sender's machine; 3.12 made them ASCII.
var (
	udpHello       = [4]byte{'9', '8', '7', '6'}
	udpAnswer      = [4]byte{'6', '7', '8', '9'}
	udpHelloBefore = [][4]byte{{0x15, 0xCD, 0x5B, 0x07}, {0x07, 0x5B, 0xCD, 0x15}}
	udpAnswers     = [][4]byte{udpAnswer, {0xB1, 0x68, 0xDE, 0x3A}, {0x3A, 0xDE, 0x68, 0xB1}}
)

// AnswerHello returns what a server sends back to a stream's first datagram, in the
// dialect it was addressed in. ok is false for anything that is no greeting.
func AnswerHello(datagram []byte) (answer [4]byte, ok bool) {
	if len(datagram) != 4 {
		return answer, false
	}
	switch hello := [4]byte(datagram); hello {
	case udpHello:
		return udpAnswer, true
	case udpHelloBefore[0]:
		return udpAnswers[1], true
	case udpHelloBefore[1]:
		return udpAnswers[2], true
	}
	return answer, false
}

// mark is what stands behind the four bytes in tests that ask for it (Params.Marked): only
// who knows the cookie can say it, in this host's name or from behind its address. With it
// a greeting stays shorter than any datagram of a test, so that one that is repeated too
// late is never counted.
func mark(cookie Cookie) []byte {
	sum := sha256.Sum256(cookie[:])
	return sum[:7]
}

// IsAnswer says whether a datagram is a server's answer, in any dialect.
func IsAnswer(datagram []byte) bool {
	if len(datagram) != 4 {
		return false
	}
	for _, known := range udpAnswers {
		if [4]byte(datagram) == known {
			return true
		}
	}
	return false
}
