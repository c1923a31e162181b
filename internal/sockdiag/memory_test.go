package sockdiag

import (
	"strings"
	"testing"
)

// protocols is Linux 6.18's table, cut to what matters.
const protocols = "protocol  size sockets  memory press maxhdr  slab module     " +
	`cl co di ac io in de sh ss gs se re bi br ha uh gp em
AF_VSOCK  1240      0      -1   NI       0   yes  kernel      y  n  n  n  n  n  n  n  n  n  n  n  n  n  n  n  n  n  n
UDPv6     1408      0     154   NI       0   yes  kernel      y  y  y  n  y  n  y  n  y  y  y  y  n  n  n  y  y  y  n
TCPv6     2560      3     740   no     320   yes  kernel      y  y  y  y  y  y  y  y  y  y  y  y  y  n  y  y  y  y  y
SMC       1200      0      -1   yes      0   yes  kernel      y  y  y  y  y  y  y  y  y  y  y  y  y  n  y  y  y  y  y
TCP       2400     41     740   no     320   yes  kernel      y  y  y  y  y  y  y  y  y  y  y  y  y  n  y  y  y  y  y
`

func TestMemoryShortIsReadOfTheProtocols(t *testing.T) {
	pressed := strings.ReplaceAll(protocols, "740   no ", "740   yes")
	for text, want := range map[string]bool{
		"":        false,
		protocols: false,
		pressed:   true,
		strings.Replace(protocols, "41     740   no ", "41     740   yes", 1): true, // IPv4's line alone
		strings.Replace(pressed, "press", "PRESS", 1):                         false,
		"protocol size\nTCP yes\n":                                            false,
	} {
		if got := memoryShort([]byte(text)); got != want {
			t.Errorf("%v of\n%s", got, text)
		}
	}
}
