package iperf3

import (
	"strings"
	"testing"
)

// longOptions are the long options of iperf3 3.21 (longopts in iperf_api.c).
const longOptions = `
affinity authorized-users-path bandwidth bidir bind bind-dev bitrate blockcount bytes client
cntl-ka congestion connect-timeout cport daemon debug dont-fragment dscp extra-data file
flowlabel forceflush format fq-rate get-server-output gsro help idle-timeout interval json
json-stream json-stream-full-output length linux-congestion logfile mptcp no-delay
no-fq-socket-pacing nstreams omit one-off pacing-timer parallel pidfile port rcv-timeout
repeating-payload reverse rsa-private-key-path rsa-public-key-path sctp server
server-bitrate-limit server-max-duration set-mss skip-rx-copy snd-timeout time
time-skew-threshold timestamps title tos udp udp-counters-64bit use-pkcs1-padding username
verbose version version4 version6 window xbind zerocopy
`

// TestOptions_OfIperf3 checks that each option of iperf3 is accepted or refused with a reason.
// The root command has --help and --json.
func TestOptions_OfIperf3(t *testing.T) {
	cmd := New()
	for _, name := range strings.Fields(longOptions) {
		if name != "help" && name != "json" && cmd.Flags().Lookup(name) == nil {
			t.Errorf("--%s is unknown", name)
		}
	}
	for _, m := range missing {
		if !strings.Contains(cmd.Long, "--"+m.name+" ") || !strings.Contains(cmd.Long, m.why) {
			t.Errorf("--%s is refused, and the help does not say why", m.name)
		}
	}
}
