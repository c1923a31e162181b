package tune

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// setting is tcp_wmem of a network namespace of the test's own; its maximum says how far
// automatic sizing gets.
const setting = "net.ipv4.tcp_wmem"

func settingIs(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/net/ipv4/tcp_wmem")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))[2]
}

func set(most string) error {
	return os.WriteFile("/proc/sys/net/ipv4/tcp_wmem", []byte("4096 16384 "+most+"\n"), 0o600)
}

// settled is a far end that does as this host's settings say.
type settled struct {
	*simpeer.Peer
	t    *testing.T
	runs int
	each func(run int) error // before each run; nil: nothing
}

func (s *settled) Run(ctx context.Context, test transfer.Test, each func(transfer.Interval)) ([]transfer.Outcome,
	error) {
	var err error
	if s.Path.AutoWindow, err = strconv.ParseFloat(settingIs(s.t), 64); err != nil {
		return nil, err
	}
	s.runs++
	if s.each != nil {
		if err := s.each(s.runs); err != nil {
			return nil, err
		}
	}
	return s.Peer.Run(ctx, test, each)
}

func TestApply(t *testing.T) {
	testenv.Need(t, testenv.NetworkNamespace)
	if !testenv.Inside(t, syscall.CLONE_NEWNET) {
		return
	}
	broken := errors.New("the cable is out")
	for _, c := range []struct {
		name   string
		old    string
		new    string
		noise  float64
		each   func(run int, cancel func()) error
		kept   bool
		err    error
		reason Code
		left   string // of the setting; "" is old or new as kept says
	}{
		{name: "a gain", old: "65535", new: "600000", kept: true, reason: FasterChanged},
		{name: "a gain in noise", old: "65535", new: "600000", noise: 0.1, kept: true, reason: FasterChanged},
		{name: "no difference", old: "600000", new: "700000", reason: NoGainShown},
		{name: "slower", old: "600000", new: "65535", reason: SlowerChanged},
		{name: "the far end goes away", old: "65535", new: "600000", reason: ProofCutShort, err: broken,
			each: func(run int, _ func()) error {
				if run == 3 {
					return broken
				}
				return nil
			}},
		{name: "Ctrl-C", old: "65535", new: "600000", reason: ProofCutShort, err: context.Canceled,
			each: func(run int, cancel func()) error {
				if run == 4 {
					cancel()
				}
				return nil
			}},
		{name: "somebody else's change", old: "65535", new: "600000", reason: HostNotSet, left: "300000",
			each: func(run int, _ func()) error {
				if run == 1 {
					return set("300000")
				}
				return nil
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("FULLPIPE_STATE", t.TempDir())
			if err := set(c.old); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			path := narrow()
			if c.noise > 0 {
				path.Noise.Dev = c.noise
			}
			peer := &settled{Peer: simpeer.New(path, 7), t: t}
			if c.each != nil {
				peer.each = func(run int) error { return c.each(run, cancel) }
			}
			d := &Direction{Direction: transfer.Up, Path: Path{RTT: path.RTT, MSS: path.MSS, CapacityBps: path.CapacityBps()}}
			var lasting []host.Change
			persist := func(_ context.Context, changes []host.Change) ([]host.Did, error) {
				lasting = changes
				return []host.Did{{Kind: host.Sysctl, Name: setting}, {Kind: host.File, Name: host.PersistFile}}, nil
			}
			changes := []host.Change{host.Set(host.Sysctl, setting, "4096 16384 "+c.new)}
			got, err := Apply(ctx, Config{Peer: peer, Persist: persist}, d, changes, nil)
			files := slices.ContainsFunc(got.Changes, func(d host.Did) bool { return d.Kind == host.File })
			if got.Lasting != c.kept || (len(lasting) == 1) != c.kept || files != c.kept {
				t.Errorf("made to last %v (%+v), listed %v; kept %v", got.Lasting, lasting, files, c.kept)
			}
			if c.err != nil && !errors.Is(err, c.err) || (err != nil) != (c.err != nil || c.left != "") {
				t.Errorf("error %v, want %v", err, c.err)
			}
			if got.Kept != c.kept || got.Reason.Code != c.reason ||
				c.left != "" && !strings.Contains(got.Reason.Err.Error(), "somebody else") {
				t.Errorf("kept %v: %s; gain %+v", got.Kept, got.Reason.Code, got.Gain)
			}
			want := c.left
			if want == "" {
				want = map[bool]string{true: c.new, false: c.old}[c.kept]
			}
			if text := settingIs(t); text != want {
				t.Errorf("the setting is %s, want %s", text, want)
			}
			if _, err := host.Undo(context.Background(), host.Config{}); err != nil {
				t.Fatal(err)
			}
			if text := settingIs(t); c.left == "" && text != c.old {
				t.Errorf("after undo the setting is %s, want %s", text, c.old)
			}
		})
	}
}

func TestBetterCongestion_OnlyWhereItHelps(t *testing.T) {
	remedy := func(name string, low, mid float64) Remedy {
		r := Remedy{Name: name, Setup: Setup{Congestion: name}}
		r.Gain.Low, r.Gain.Mid = low, mid
		return r
	}
	d := Direction{Direction: transfer.Up, Remedies: []Remedy{remedy("reno", 1.02, 1.05), remedy("bbr", 1.2, 1.5),
		remedy("cubic", 0.9, 2)}}
	if got := d.betterCongestion(); got != "bbr" {
		t.Errorf("chosen %q", got)
	}
	d.Direction = transfer.Down
	if got := d.betterCongestion(); got != "" {
		t.Errorf("the far end sends, yet %q", got)
	}
}

// TestHostChanges_OnlyShownSetups checks that a host gets only the changes that were shown to help, and both parts
// of a combination.
func TestHostChanges_OnlyShownSetups(t *testing.T) {
	testenv.Need(t, testenv.NetworkNamespace)
	if !testenv.Inside(t, syscall.CLONE_NEWNET) {
		return
	}
	if err := set("65536"); err != nil {
		t.Fatal(err)
	}
	target, err := plan.ParseTarget("linux")
	if err != nil {
		t.Fatal(err)
	}
	now := &audit.Snapshot{Values: map[string]string{"net.ipv4.tcp_wmem": "4096 16384 65536"}, MemoryBytes: 1 << 34}
	path := Path{RTT: 40 * time.Millisecond, MSS: 1448, CapacityBps: 96e6, BottleneckBps: 100e6, Window: 500e3}
	for _, c := range []struct {
		setup            Setup
		buffers, control bool
	}{{Setup{Congestion: "bbr"}, false, true}, {Setup{Window: 500e3}, true, false},
		{Setup{Window: 500e3, Congestion: "bbr"}, true, true}} {
		d := &Direction{Direction: transfer.Up, Path: path, Trials: []Trial{{Automatic: true, Effective: 65536}},
			Chosen: &Chosen{Setup: c.setup}, Remedies: []Remedy{{Setup: Setup{Congestion: "bbr"},
				Gain: stats.Interval{Low: 1.2, Mid: 1.5, High: 2}}}}
		got, err := d.HostChanges(netip.MustParseAddr("127.0.0.1"), target, now)
		if err != nil {
			t.Fatal(err)
		}
		has := func(part string) bool {
			return slices.ContainsFunc(got, func(c host.Change) bool { return strings.Contains(c.Name, part) })
		}
		if has("tcp_wmem") != c.buffers || has("congctl") || has("tcp_congestion_control") != c.control {
			t.Errorf("%s: %+v", c.setup, got)
		}
	}
}
