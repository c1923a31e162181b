//go:build linux

package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	documents "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// countersOnly runs a program without the privileges of eBPF, as a container has it.
const countersOnly = "setpriv --bounding-set -bpf,-perfmon,-sys_admin "

// lossCase drops packets at one place of a lab's two hosts. In its scripts $N is one packet in how many, $RATE a
// share of the link's rate.
type lossCase struct {
	name      string
	path      string // after the link's rate and round trip
	near, far string // scripts before the measurement
	measure   string // arguments
	// want are the right places as SIDE/PLACE, or PLACE.
	want []string
	// silent reports that TCP does not retransmit what this place drops: it refuses the packets.
	silent bool
}

const lossRule = "nft 'add table inet t; add chain inet t c { type filter hook %s priority 0; }; " +
	"add rule inet t c meta l4proto tcp meta length > 1000 numgen inc mod '$N' < 1 counter drop'\n"

// lossCases are the places of two hosts that the lab has no other network namespaces between.
var lossCases = []lossCase{
	{name: "the sender's nft output", near: fmt.Sprintf(lossRule, "output"), want: []string{"sender-host/firewall"},
		silent: true},
	{name: "the sender's qdisc", near: "tc qdisc replace dev lab0 root tbf rate ${RATE}mbit burst 30kb limit 60kb\n",
		want: []string{"sender-host/queue"}},
	{name: "the wire", path: ",loss=$LOSS%", want: []string{documents.BetweenHosts}},
	{name: "the receiver's nft input", far: fmt.Sprintf(lossRule, "input"), want: []string{"receiver-host/firewall"}},
	{name: "packets over the MTU, on the wire", path: ",mtu=1400,loss=$LOSS%", want: []string{documents.BetweenHosts}},
}

// TestBankPlacesOfLoss drops packets at known places at three rates, with and without eBPF at both ends.
func TestBankPlacesOfLoss(t *testing.T) {
	bankOnly(t)
	testenv.Need(t, testenv.Root, testenv.BPF, testenv.NFT)
	for _, traced := range []bool{true, false} {
		right, wrong, unknown := 0, 0, 0
		var notes []string
		for i := range lossCases {
			for rate := range 3 {
				c := &lossCases[i]
				all := c.run(t, traced, rate)
				switch places := localPlaces(all, c.silent); {
				case len(places) == 1 && slices.Contains(c.want, places[0]):
					right++
				case len(places) == 0:
					unknown++
					notes = append(notes, fmt.Sprintf("%s %d: not known", c.name, rate))
				default:
					wrong++
					notes = append(notes, fmt.Sprintf("%s %d: %v", c.name, rate, places))
				}
			}
		}
		n := 3 * len(lossCases)
		row := bankRow{Section: "Places of loss", Case: "counters only", Claim: "at least 6 of 10 places, none wrong",
			Measured: fmt.Sprintf("%d of %d right, %d wrong, %d not known", right, n, wrong, unknown),
			Spread:   strings.Join(notes, "; "), Verdict: "fail", Command: "fullpipe measure in a lab with faults"}
		minRight := 6 * n / 10
		if traced {
			row.Case = "eBPF at both ends"
			row.Claim = "29 of 30 right, none wrong"
			minRight = n * 29 / 30
		}
		if right >= minRight && wrong == 0 {
			row.Verdict = "pass"
		}
		record(t, row)
	}
}

// run measures once and returns the places of loss.
func (c *lossCase) run(t *testing.T, traced bool, rate int) []documents.LostAt {
	t.Helper()
	prefix, drops := "", "--drops"
	if !traced {
		prefix = countersOnly
		drops = "--drops=auto"
	}
	n := []int{50, 200, 1000}[rate]
	loss := fmt.Sprintf("%g", 100/float64(n))
	path := "rate=100mbit,rtt=10ms,queue=40bdp" + strings.ReplaceAll(c.path, "$LOSS", loss)
	cmd := exec.Command(harness.Program(t), "lab", path, "--far", "sh -euc \"$FAR\"", "--", "sh", "-euc", c.near+
		prefix+"$F measure $FULLPIPE_FAR --time 3s --json "+c.measure)
	cmd.Env = append(os.Environ(), "F="+harness.Program(t), "FAR="+c.far+"exec "+prefix+"$F serve --quiet "+drops,
		"FULLPIPE_KEY="+harness.TuneKey, fmt.Sprintf("N=%d", n), fmt.Sprintf("RATE=%d", []int{20, 40, 80}[rate]))
	var doc documents.Measure
	out, err := cmd.Output()
	if err != nil || json.Unmarshal(out, &doc) != nil || len(doc.Directions) != 1 {
		t.Errorf("%s: %v: %s", c.name, err, out)
		return nil
	}
	for _, l := range doc.Directions[0].LostAt {
		t.Logf("%s, eBPF %v, %d: %+v", c.name, traced, rate, l)
	}
	return doc.Directions[0].LostAt
}

// localPlaces returns the places of at least a tenth of the losses, or with silent of any dropped packets.
func localPlaces(all []documents.LostAt, silent bool) (places []string) {
	const minShare = 0.1
	for _, l := range all {
		switch {
		case silent && l.DroppedPackets == 0 || !silent && documents.OrZero(l.Share) < minShare:
		case l.Side != "":
			places = append(places, l.Side+"/"+l.Place)
		case l.Place == documents.BetweenHosts:
			places = append(places, l.Place)
		}
	}
	return places
}
