package sockops

import (
	"encoding/binary"
	"net/netip"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func ptr(s []uint32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

func TestOwnCgroup(t *testing.T) {
	const (
		unified = "25 1 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		hybrid  = "24 1 0:21 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n30 24 0:25 / /sys/fs/cgroup/cpu rw - cgroup cgroup " +
			"rw,cpu\n" +
			"31 24 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		container = "25 1 0:22 /docker/abc /sys/fs/cgroup rw master:4 - cgroup2 cgroup rw\n"
		odd       = `25 1 0:22 / /my\040groups rw - cgroup2 cgroup2 rw` + "\n"
	)
	for _, tt := range []struct{ name, mounts, own, want string }{
		{"unified", unified, "0::/user.slice/session.scope\n", "/sys/fs/cgroup/user.slice/session.scope"},
		{"hybrid", hybrid, "4:cpu:/x\n0::/\n", "/sys/fs/cgroup/unified"},
		{"container", container, "0::/docker/abc/leaf\n", "/sys/fs/cgroup/leaf"},
		{"outside of the mount", container, "0::/other\n", "/sys/fs/cgroup"},
		{"a blank in the path", odd, "0::/a\n", "/my groups/a"},
		{"none", "24 1 0:21 / /sys rw - sysfs sysfs rw\n", "0::/\n", ""},
	} {
		got, err := ownCgroup(tt.mounts, tt.own)
		if got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestRuleValue_Layout(t *testing.T) {
	v := ruleValue(3, transfer.Socket{SendBuffer: 1, ReceiveBuffer: 2, Clamp: 3, MSS: 4, NoDelay: true, PacingBps: 80,
		Congestion: "bbr"})
	if len(v) != ruleSize {
		t.Fatalf("%d bytes, want %d", len(v), ruleSize)
	}
	for i, want := range []uint32{1, 2, 3, 4, 1, 10, 3} {
		if got := binary.NativeEndian.Uint32(v[4*i:]); got != want {
			t.Errorf("word %d is %d, want %d", i, got, want)
		}
	}
	if unix.ByteSliceToString(v[ruleCongestion:]) != "bbr" {
		t.Errorf("congestion %q", v[ruleCongestion:])
	}
	key := ruleKey(Rule{To: netip.MustParsePrefix("10.1.2.3/8")}.prefix())
	if len(key) != keySize || binary.NativeEndian.Uint32(key) != 104 || string(key[14:]) != "\xff\xff\x0a\x00\x00\x00" {
		t.Errorf("key % x", key)
	}
}

func TestConfig_Invalid(t *testing.T) {
	ten := netip.MustParsePrefix("10.0.0.0/8")
	for name, cfg := range map[string]Config{
		"twice":     {Rules: []Rule{{To: ten}, {To: netip.MustParsePrefix("10.9.9.9/8")}}},
		"negative":  {Rules: []Rule{{Socket: transfer.Socket{SendBuffer: -1}}}},
		"too large": {Rules: []Rule{{Socket: transfer.Socket{ReceiveBuffer: 1<<30 + 1}}}},
		"long name": {Rules: []Rule{{Socket: transfer.Socket{Congestion: "abcdefghijklmnop"}}}},
		"pacing":    {Rules: []Rule{{Socket: transfer.Socket{PacingBps: 1e12}}}},
		"too often": {Every: 1},
	} {
		if cfg.Every == 0 {
			cfg.Every = 1e9
		}
		if cfg.check() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzEstablished(f *testing.F) {
	f.Add(make([]byte, connSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := parseEstablished(b); err == nil && !e.local.IsValid() {
			t.Errorf("%+v", e)
		}
	})
}

func FuzzOwnCgroup(f *testing.F) {
	for _, name := range []string{"/proc/self/mountinfo", "/proc/self/cgroup"} {
		text, _ := os.ReadFile(name)
		f.Add(string(text), "0::/\n")
	}
	f.Fuzz(func(t *testing.T, mounts, own string) { _, _ = ownCgroup(mounts, own) })
}
