package transfer

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestFields_ValuesAreStable compares the values of Fields with those of docs/protocol.md.
func TestFields_ValuesAreStable(t *testing.T) {
	doc, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	for value, is := range map[Fields]Fields{
		1: HaveRTT, 2: HaveMinRTT, 4: HaveCwnd, 8: HaveSendWnd, 16: HaveInFlight, 32: HaveNotSent, 64: HaveLimits,
		128: HaveRate, 256: HaveRetrans, 512: HaveRecovery, 1024: HaveAcked, 2048: HaveReceived, 4096: HaveReceiveWnd,
		8192: HaveQueue, 16384: HaveProgram, 32768: HaveDeliveredCE,
		65536: HaveRcvOOOPack, 131072: HaveDSACKDups, 262144: HaveSegmentsIn,
	} {
		if is != value {
			t.Errorf("%d has become %d", value, is)
		}
		if !strings.Contains(string(doc), fmt.Sprintf("\n| %d | ", value)) {
			t.Errorf("docs/protocol.md does not list %d", value)
		}
	}
}
