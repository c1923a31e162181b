package cli

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
)

func TestIperf3_RefusesTimesOutOfRange(t *testing.T) {
	for _, line := range []string{
		"-s --server-max-duration 9223372037", "-s --server-max-duration -1", "-s -1 --idle-timeout 9223372037",
		"-s --time-skew-threshold 9223372037", "-s --time-skew-threshold 0", "-c 127.0.0.1 --connect-timeout 9223372036855",
	} {
		words := strings.Fields(line)
		flag := words[len(words)-2]
		status, errs := ended(t, program(t, append([]string{"iperf3"}, words...)...))
		if status != exit.Failed || !strings.Contains(errs, flag+": ") || !strings.Contains(errs, "out of range (try: ") {
			t.Errorf("%s: status %d, %s", line, status, errs)
		}
	}
}
