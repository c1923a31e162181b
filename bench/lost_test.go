//go:build linux

package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/bpf"
	documents "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// countersOnly runs a program without the privileges of eBPF, as a container has it.
const countersOnly = "setpriv --bounding-set -bpf,-perfmon,-sys_admin "

// lossCase drops packets at one place of a lab's two hosts. In its scripts $N is one packet in how many, $RATE a
// share of the link's rate in Mbit/s, $LOSS that of the link's losses in percent, $MTU a small one of the link, $STOP
// how many seconds the receiving program stops at a time, $WAIT the time whose packets the link delivers together, and
// $MEM the memory of its sockets in bytes.
type lossCase struct {
	name string
	path string // after the link's rate and round trip
	// near and far run on the two hosts before the measurement, command on the near one instead of it: $MEASURE.
	near, far, command string
	measure            string // arguments
	want               string // the right place as SIDE/PLACE, or PLACE
	// silent reports that TCP does not always retransmit what this place drops: it refuses the packets.
	silent bool
}

const (
	lossRule = "nft 'add table inet t; add chain inet t c { type filter hook %s priority 0; }; " +
		"add rule inet t c meta l4proto tcp meta length > 1000 numgen inc mod '$N' < 1 counter drop'\n"
	// stopsAtTimes stops the receiving program, which the shell becomes.
	stopsAtTimes = "(sleep 1.5; while kill -STOP $$; do sleep $STOP; kill -CONT $$; sleep 0.3; done) &\n"
	// routed makes the near host a router between the far one and a third, on which the measurement runs. That is the
	// near host of a second lab. The router takes the device of that lab's far host.
	routed = `
(until pid=$(pgrep -xf 'sleep 4711'); do sleep 0.05; done
nsenter -t $pid -n ip link set lab0 down
nsenter -t $pid -n ip link set lab0 name lab1 netns $$
ip addr flush dev lab0; ip link set lab1 up
ip route replace 198.18.0.2 dev lab0; ip route replace 198.18.0.1 dev lab1
sysctl -qw net.ipv4.ip_forward=1; touch $DIR/routed) &
`
	behindRouter = `$F lab rate=1gbit,rtt=1ms --far 'exec sleep 4711' -- ` +
		`sh -euc 'until [ -e $DIR/routed ]; do sleep 0.05; done; eval "$MEASURE"'`
	// bridged sends the near host's packets over a bridge and a pair of veth devices of its own.
	bridged = `
ip link add br0 type bridge; ip link add v0 type veth peer name v1; ip link set v0 master br0
for d in br0 v0 v1; do ip link set $d up; sysctl -qw net.ipv4.conf.$d.rp_filter=0 net.ipv4.conf.$d.accept_local=1; done
sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.ip_forward=1
ip rule add iif v1 lookup 100; ip route add 198.18.0.2 dev lab0 table 100
ip neigh replace 198.18.0.2 lladdr $(ip -o link show v1 | grep -o 'ether [^ ]*' | cut -c7-) dev br0
ip route replace 198.18.0.2 dev br0 src 198.18.0.1
`
	// flooded sends the far host's packets over a bridge that does not know where they belong: it floods them to 61
	// ports, each segment for itself, the host's own port last. More than net.core.netdev_max_backlog (1000) come
	// together.
	flooded = `
ip link add br0 up type bridge
ip link add v0 master br0 gso_max_segs 1 up type veth peer name v1; ip link set v1 up
unshare -n sleep 4712 &
until other=$(pgrep -xf 'sleep 4712'); do sleep 0.05; done
seq 60 | sed "s/.*/link add p& master br0 gso_max_segs 1 up type veth peer name q& netns $other/" | ip -batch -
seq 60 | sed 's/.*/link set q& up/' | nsenter -t $other -n ip -batch -
sysctl -qw net.ipv4.ip_early_demux=0 net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 \
	net.ipv4.conf.v1.rp_filter=0 net.ipv4.conf.v1.accept_local=1 net.ipv4.conf.lab0.rp_filter=0
ip rule add pref 10 lookup local; ip rule add pref 1 iif lab0 lookup 100; ip rule del pref 0
ip route add 198.18.0.2 dev br0 table 100
ip neigh replace 198.18.0.2 lladdr $(ip -o link show v1 | grep -o 'ether [^ ]*' | cut -c7-) dev br0
touch $DIR/ready
`
	untilReady = "until [ -e $DIR/ready ]; do sleep 0.05; done; sleep 0.5\n"
	// shortOfMemory limits the memory of the receiving program's TCP sockets (cgroup v1). A packet that is lost on the
	// way makes it keep others.
	shortOfMemory = `
mkdir -p $CGROUP; echo $MEM > $CGROUP/memory.kmem.tcp.limit_in_bytes; echo $$ > $CGROUP/cgroup.procs
`
)

// lossCases are ten places: of the sending host, on the way, and of the receiving host.
var lossCases = []lossCase{
	{name: "the sender's nft output", near: fmt.Sprintf(lossRule, "output"), want: "sender-host/firewall",
		silent: true},
	{name: "the sender's qdisc", near: "tc qdisc replace dev lab0 root tbf rate ${RATE}mbit burst 2kb limit 20kb\n",
		measure: "--parallel 4", want: "sender-host/queue", silent: true},
	{name: "the wire", path: ",loss=$LOSS%", want: documents.BetweenHosts},
	{name: "a router", near: fmt.Sprintf(lossRule, "forward") + routed, command: behindRouter, want: documents.BetweenHosts},
	{name: "the receiver's nft input", far: fmt.Sprintf(lossRule, "input"), want: "receiver-host/firewall"},
	{name: "the receiver's socket buffer", path: ",loss=0.05%", far: shortOfMemory, want: "receiver-host/socket"},
	{name: "the receiver's backlog", path: ",up.aggregate=$WAIT", far: flooded, near: untilReady,
		want: "receiver-host/backlog"},
	{name: "the UDP socket's buffer", far: stopsAtTimes, measure: "--udp --rate 50mbit", want: "receiver-host/socket"},
	{name: "a bridge's queue", near: bridged + "tc qdisc replace dev v0 root tbf rate ${RATE}mbit burst 2kb limit 20kb\n",
		measure: "--parallel 4", want: "sender-host/queue", silent: true},
	{name: "packets over the MTU", path: ",mtu=$MTU,icmp=drop", near: "sysctl -qw net.ipv4.tcp_mtu_probing=1\n",
		want: documents.BetweenHosts},
}

// TestBankPlacesOfLoss drops packets at known places at three rates, with and without eBPF at both ends.
func TestBankPlacesOfLoss(t *testing.T) {
	bankOnly(t)
	testenv.Need(t, testenv.Root, testenv.BPF, testenv.NFT)
	for _, traced := range []bool{true, false} {
		right, wrong, unknown, named := 0, 0, 0, 0
		explained, retransmitted := int64(0), int64(0)
		var notes []string
		for i := range lossCases {
			c := &lossCases[i]
			rights := 0
			for rate := range 3 {
				d := c.run(t, traced, rate)
				explained += d.at(c.want)
				retransmitted += d.lost()
				switch places := d.places(c.silent); {
				case len(places) == 1 && places[0] == c.want:
					rights++
				case len(places) == 0:
					unknown++
					notes = append(notes, fmt.Sprintf("%s %d: not known", c.name, rate))
				default:
					wrong++
					notes = append(notes, fmt.Sprintf("%s %d: %v", c.name, rate, places))
				}
			}
			right += rights
			if rights > 0 {
				named++
			}
		}
		n := 3 * len(lossCases)
		row := bankRow{Section: "Places of loss", Case: "counters only", Claim: "at least 6 of 10 places, none wrong",
			Measured: fmt.Sprintf("%d of %d right, %d wrong, %d not known; %d of %d places; %d of %d lost packets", right, n,
				wrong, unknown, named, len(lossCases), explained, retransmitted),
			Spread: strings.Join(notes, "; "), Verdict: "fail", Command: "fullpipe measure in a lab with faults"}
		passed := named >= 6
		if traced {
			row.Case = "eBPF at both ends"
			row.Claim = "29 of 30 right, none wrong"
			passed = right >= n*29/30
		}
		if passed && wrong == 0 {
			row.Verdict = "pass"
		}
		record(t, row)
	}
}

// TestBankTwoPlacesOfLoss drops packets on the wire and at the receiver's firewall in one transfer.
func TestBankTwoPlacesOfLoss(t *testing.T) {
	bankOnly(t)
	testenv.Need(t, testenv.Root, testenv.BPF, testenv.NFT)
	const maxOff = 0.1
	right := 0
	var notes []string
	for rate := range 3 {
		c := lossCase{name: "two places", path: ",loss=$LOSS%", far: fmt.Sprintf(lossRule, "input") + "(while sleep 0.2; do " +
			"nft list table inet t > $DIR/rule.new; mv $DIR/rule.new $DIR/rule; done) &\n"}
		d := c.run(t, true, rate)
		firewall := float64(d.ruleBytes) / float64(d.MSS+52)
		wire := float64(d.wireLost)
		truth := firewall / (firewall + wire)
		at := float64(d.at("receiver-host/firewall"))
		between := float64(d.at(documents.BetweenHosts))
		found := at / max(at+between, 1)
		if math.Abs(found-truth) <= maxOff && at > 0 && between > 0 {
			right++
		}
		notes = append(notes, fmt.Sprintf("firewall %.0f %% of %.0f, found %.0f %%", 100*truth, firewall+wire, 100*found))
	}
	row := bankRow{Section: "Places of loss", Case: "two places at once", Claim: "3 of 3, shares within 10 points",
		Measured: fmt.Sprintf("%d of 3", right), Spread: strings.Join(notes, "; "), Verdict: "fail",
		Command: "fullpipe measure in a lab with faults"}
	if right == 3 {
		row.Verdict = "pass"
	}
	record(t, row)
}

// lossResult is the direction of a measurement by TCP or UDP, with the lab's own counts.
type lossResult struct {
	LostAt        []documents.LostAt `json:"lost_at"`
	Retransmitted *int64             `json:"retransmitted_segments"`
	Datagrams     int64              `json:"lost_datagrams"`
	MSS           int64              `json:"mss_bytes"`
	wireLost      int64
	ruleBytes     int64 // that the rule dropped
}

func (d *lossResult) lost() int64 { return max(d.Datagrams, documents.OrZero(d.Retransmitted)) }

// at returns how many lost packets are attributed to a place.
func (d *lossResult) at(place string) (n int64) {
	for i := range d.LostAt {
		if placeOf(&d.LostAt[i]) == place {
			n += d.LostAt[i].Segments
		}
	}
	return n
}

// places returns the places of at least a tenth of the losses, or with silent of any dropped packets.
func (d *lossResult) places(silent bool) (all []string) {
	const minShare = 0.1
	for i := range d.LostAt {
		l := &d.LostAt[i]
		dropped := silent && l.DroppedPackets > 0 || documents.OrZero(l.Share) >= minShare
		if place := placeOf(l); dropped && place != "" && !slices.Contains(all, place) {
			all = append(all, place)
		}
	}
	return all
}

func placeOf(l *documents.LostAt) string {
	if l.Place == documents.Elsewhere || l.Place == documents.NotLost {
		return ""
	}
	return l.Name()
}

// run measures once.
func (c *lossCase) run(t *testing.T, traced bool, rate int) (d lossResult) {
	t.Helper()
	prefix, drops := "", "--drops"
	if !traced {
		prefix = countersOnly
		drops = "--drops=auto"
	}
	dir := t.TempDir()
	cgroup := fmt.Sprintf("/sys/fs/cgroup/memory/fullpipe-lost-%d", os.Getpid())
	defer os.Remove(cgroup) // if there is one
	n := []int{50, 200, 1000}[rate]
	numbers := map[string]string{"N": fmt.Sprint(n), "LOSS": fmt.Sprintf("%g", 100/float64(n)),
		"RATE": []string{"20", "40", "80"}[rate], "MTU": []string{"1200", "1300", "1400"}[rate],
		"STOP": []string{"0.04", "0.06", "0.1"}[rate], "WAIT": []string{"8ms", "10ms", "12ms"}[rate],
		"MEM": []string{"100000", "150000", "200000"}[rate], "DIR": dir, "CGROUP": cgroup, "F": harness.Program(t),
		"FULLPIPE_KEY": harness.TuneKey,
		"MEASURE":      prefix + "$F measure $FULLPIPE_FAR --time 3s --json " + c.measure,
		"FAR":          c.far + "exec " + prefix + "$F serve --quiet " + drops}
	env := os.Environ()
	for name, value := range numbers {
		env = append(env, name+"="+value)
	}
	path := os.Expand("rate=100mbit,rtt=10ms,queue=40bdp"+c.path, func(name string) string { return numbers[name] })
	cmd := exec.Command(harness.Program(t), "lab", path, "--report", dir+"/report", "--far", "sh -euc \"$FAR\"", "--", "sh",
		"-euc", c.near+cmp.Or(c.command, "eval \"$MEASURE\""))
	cmd.Env = env
	var errors strings.Builder
	cmd.Stderr = &errors
	var doc struct {
		Directions []lossResult `json:"directions"`
	}
	out, err := cmd.Output()
	if err != nil || json.Unmarshal(out, &doc) != nil || len(doc.Directions) != 1 {
		t.Errorf("%s: %v: %s%s", c.name, err, out, errors.String())
		return d
	}
	d = doc.Directions[0]
	var report struct {
		Directions []struct {
			Lost int64 `json:"lost_packets"`
		} `json:"directions"`
	}
	text, err := os.ReadFile(dir + "/report")
	if err == nil && json.Unmarshal(text, &report) == nil && len(report.Directions) > 0 {
		d.wireLost = report.Directions[0].Lost
	}
	rule, _ := os.ReadFile(dir + "/rule") // of one case
	if _, after, is := strings.Cut(string(rule), " bytes "); is {
		_, _ = fmt.Sscan(after, &d.ruleBytes)
	}
	for i := range d.LostAt {
		t.Logf("%s, eBPF %v, %d: %+v", c.name, traced, rate, d.LostAt[i])
	}
	t.Logf("%s, eBPF %v, %d: %d lost", c.name, traced, rate, d.lost())
	return d
}

// TestBankCostOfPlacesOfLoss measures the programs of both ends by the kernel's own statistics while a lab carries
// 1 Gbit/s with losses.
func TestBankCostOfPlacesOfLoss(t *testing.T) {
	bankOnly(t)
	testenv.Need(t, testenv.Root, testenv.BPF)
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		t.Fatal(err)
	}
	defer stats.Close()
	const length = 10 * time.Second
	cmd := exec.Command(harness.Program(t), "lab", "rate=1gbit,rtt=10ms,queue=2bdp,loss=0.1%", "--far",
		"exec $F serve --quiet --drops", "--", "sh", "-euc",
		"exec $F measure $FULLPIPE_FAR --parallel 16 --json --time "+length.String())
	cmd.Env = append(os.Environ(), "F="+harness.Program(t), "FULLPIPE_KEY="+harness.TuneKey)
	var out, errors strings.Builder
	cmd.Stdout = &out
	cmd.Stderr = &errors
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	type cost struct {
		name string
		time time.Duration
		runs uint64
	}
	costs := map[ebpf.ProgramID]cost{}
	for running := true; running; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v: %s", err, errors.String())
			}
			running = false
		case <-time.After(100 * time.Millisecond):
		}
		for id, err := ebpf.ProgramGetNextID(0); err == nil; id, err = ebpf.ProgramGetNextID(id) {
			p, err := ebpf.NewProgramFromID(id)
			if err != nil {
				continue
			}
			info, err := p.Info()
			if err == nil && (info.Name == bpf.Drops.Name || info.Name == bpf.Retransmissions.Name) {
				if s, err := p.Stats(); err == nil {
					costs[id] = cost{info.Name, s.Runtime, s.RunCount}
				}
			}
			_ = p.Close()
		}
	}
	var doc documents.Measure
	if err := json.Unmarshal([]byte(out.String()), &doc); err != nil || len(doc.Directions) != 1 {
		t.Fatalf("%v: %s", err, out.String())
	}
	d := &doc.Directions[0]
	var notes []string
	sum := time.Duration(0)
	for _, c := range costs {
		sum += c.time
		notes = append(notes, fmt.Sprintf("%s %d runs, %.2g µs each", c.name, c.runs,
			float64(c.time.Microseconds())/max(float64(c.runs), 1)))
	}
	slices.Sort(notes)
	share := sum.Seconds() / length.Seconds()
	row := bankRow{Section: "Places of loss", Case: "cost of the eBPF programs of both ends", Claim: "at most 1 % of a core " +
		"at 1 Gbit/s with 0.1 % loss", Measured: fmt.Sprintf("%.2g %% of a core at %s, %d segments retransmitted", 100*share,
		units.Rate(documents.OrZero(d.GoodputBps)), documents.OrZero(d.RetransmittedSegment)),
		Spread: strings.Join(notes, "; "), Verdict: "fail", Command: "run_time_ns by BPF_ENABLE_STATS, " +
			"fullpipe lab rate=1gbit,rtt=10ms,queue=2bdp,loss=0.1% --far 'fullpipe serve --drops' -- fullpipe measure " +
			"--parallel 16 --time 10s"}
	switch {
	case len(costs) == 0 || share > 0.01:
	case documents.OrZero(d.GoodputBps) < 0.9e9: // this machine did not reach the claim's rate
		row.Verdict = "inconclusive"
	default:
		row.Verdict = "pass"
	}
	record(t, row)
}
