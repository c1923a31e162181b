package tune

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// settled is a far end that does as this host's settings say: here a file that holds how
// far automatic sizing gets.
type settled struct {
	*simpeer.Peer
	file string
	runs int
	each func(run int) error // before each run; nil: nothing
}

func (s *settled) Run(ctx context.Context, spec transfer.Spec, each func(transfer.Interval)) (*transfer.Result, error) {
	text, err := os.ReadFile(s.file)
	if err != nil {
		return nil, err
	}
	if s.Path.AutoWindow, err = strconv.ParseFloat(string(text), 64); err != nil {
		return nil, err
	}
	s.runs++
	if s.each != nil {
		if err := s.each(s.runs); err != nil {
			return nil, err
		}
	}
	return s.Peer.Run(ctx, spec, each)
}

func TestApply(t *testing.T) {
	broken := errors.New("the cable is out")
	for _, c := range []struct {
		name   string
		old    string
		new    string
		noise  float64
		each   func(run int, file string, cancel func()) error
		kept   bool
		err    error
		reason string
		left   string // in the file; "" is old or new as kept says
	}{
		{name: "a gain", old: "65535", new: "600000", kept: true, reason: "faster"},
		{name: "a gain in noise", old: "65535", new: "600000", noise: 0.1, kept: true, reason: "faster"},
		{name: "no difference", old: "600000", new: "700000", reason: "no gain was shown"},
		{name: "slower", old: "600000", new: "65535", reason: "slower"},
		{name: "the far end goes away", old: "65535", new: "600000", reason: "cut short", err: broken,
			each: func(run int, _ string, _ func()) error {
				if run == 3 {
					return broken
				}
				return nil
			}},
		{name: "Ctrl-C", old: "65535", new: "600000", reason: "cut short", err: context.Canceled,
			each: func(run int, _ string, cancel func()) error {
				if run == 4 {
					cancel()
				}
				return nil
			}},
		{name: "somebody else's change", old: "65535", new: "600000", reason: "somebody else", left: "300000",
			each: func(run int, file string, _ func()) error {
				if run == 1 {
					return os.WriteFile(file, []byte("300000"), 0o600)
				}
				return nil
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("FULLPIPE_STATE", t.TempDir())
			file := filepath.Join(t.TempDir(), "setting")
			if err := os.WriteFile(file, []byte(c.old), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			path := narrow()
			if c.noise > 0 {
				path.Noise.Dev = c.noise
			}
			peer := &settled{Peer: simpeer.New(path, 7), file: file}
			if c.each != nil {
				peer.each = func(run int) error { return c.each(run, file, cancel) }
			}
			d := &Direction{Direction: transfer.Up, Path: Path{RTT: path.RTT, MSS: path.MSS, CapacityBps: path.CapacityBps()}}
			got, err := Apply(ctx, Config{Peer: peer}, d, []host.Change{host.Set(host.File, file, c.new)})
			if c.err != nil && !errors.Is(err, c.err) || (err != nil) != (c.err != nil || c.left != "") {
				t.Errorf("error %v, want %v", err, c.err)
			}
			if got.Kept != c.kept || !strings.Contains(got.Reason, c.reason) {
				t.Errorf("kept %v: %s; gain %+v", got.Kept, got.Reason, got.Gain)
			}
			want := c.left
			if want == "" {
				want = map[bool]string{true: c.new, false: c.old}[c.kept]
			}
			if text, _ := os.ReadFile(file); string(text) != want {
				t.Errorf("the setting is %s, want %s", text, want)
			}
			if _, err := host.Undo(context.Background(), host.Config{}); err != nil {
				t.Fatal(err)
			}
			if text, _ := os.ReadFile(file); c.left == "" && string(text) != c.old {
				t.Errorf("after undo the setting is %s, want %s", text, c.old)
			}
		})
	}
}

func TestBetterCongestionIsChosenOnlyWhereItHelps(t *testing.T) {
	remedy := func(name string, low, mid float64) Remedy {
		r := Remedy{Name: name, Spec: transfer.Spec{Near: transfer.Socket{Congestion: name}}}
		r.Gain.Low, r.Gain.Mid = low, mid
		return r
	}
	d := Direction{Direction: transfer.Up, Remedies: []Remedy{remedy("reno", 1.02, 1.05), remedy("bbr", 1.2, 1.5), remedy("cubic", 0.9, 2)}}
	if got := d.betterCongestion(); got != "bbr" {
		t.Errorf("chosen %q", got)
	}
	d.Direction = transfer.Down
	if got := d.betterCongestion(); got != "" {
		t.Errorf("the far end sends, yet %q", got)
	}
}
