package host

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func procPath(name string) string { return "/proc/sys/" + strings.ReplaceAll(name, ".", "/") }

// TestChanges_RejectsEditedPlans reads plan files with other names, places and values.
func TestChanges_RejectsEditedPlans(t *testing.T) {
	sysctl := func(name, kind, value string) plan.Setting {
		return plan.Setting{Name: name, Where: procPath(name), Type: kind, Value: value}
	}
	for _, c := range []struct {
		why     string
		setting plan.Setting
		prefix  string
	}{
		{"not in the catalog", sysctl("net.ipv4.ip_forward", "boolean", "1"), ""},
		{"not in the catalog", sysctl("net.ipv4.conf.all.accept_redirects", "boolean", "1"), ""},
		{"not the network's", sysctl("kernel.core_pattern", "name", "|/tmp/x"), ""},
		{"a socket option", plan.Setting{Name: "SO_RCVBUF", Where: "/proc/sys/net/core/SO_RCVBUF", Value: "4096"}, ""},
		{"another place", plan.Setting{Name: sack, Where: "/proc/sys/net/ipv4/ip_forward", Value: "1"}, ""},
		{"two lines", sysctl("net.ipv4.tcp_congestion_control", "name", "cubic\nkernel.core_pattern = |x"), ""},
		{"two lines", sysctl(rmem, "min default max", "4096 131072\n6291456"), ""},
		{"out of range", sysctl(sack, "integer", "7"), ""},
		{"out of range", sysctl("net.core.wmem_max", "integer", "1"), ""},
		{"not as many numbers", sysctl(wmem, "integer", "4096"), ""},
		{"falling", sysctl(wmem, "min default max", "9 8 7"), ""},
		{"an escape", plan.Setting{Name: "congctl", Where: "ip route change", Value: "x\x1b[2J"}, "10.0.0.0/8"},
		{"a prefix of two lines", plan.Setting{Name: "initcwnd", Where: "ip route change", Value: "20"}, "10.0.0.0/8\nx"},
	} {
		var refused *UnsettableError
		if changes, err := Changes([]plan.Setting{c.setting}, c.prefix); !errors.As(err, &refused) {
			t.Errorf("%s: %+v was accepted as %+v, %v", c.why, c.setting, changes, err)
		}
	}
}

// TestChanges_OnlyRaiseBuffers checks plans with a missing or wrong type.
func TestChanges_OnlyRaiseBuffers(t *testing.T) {
	before := raw(t)
	for _, kind := range []string{"", "integer", "name", "min default max"} {
		for _, value := range []string{"4096 4096 4096", "4096 16384 999999999"} {
			cfg := config(t)
			changes, err := Changes([]plan.Setting{{Name: wmem, Where: procPath(wmem), Type: kind, Value: value}}, "")
			if err != nil {
				t.Fatal(err)
			}
			did := must.Get(applied(cfg, changes...))(t)[0]
			old, now := strings.Fields(*did.Old), strings.Fields(*did.Took)
			if now[0] != old[0] || now[1] != old[1] || strings.HasSuffix(value, " 4096") && now[2] != old[2] ||
				strings.HasSuffix(value, "999") && now[2] != "999999999" {
				t.Errorf("type %q, value %q: %v became %v", kind, value, old, now)
			}
			must.Get(undone(cfg))(t)
			settled(t, cfg, before)
		}
	}
}

// TestAgreed_HostChangedAfterConfirmation changes the host between the question and the answer.
func TestAgreed_HostChangedAfterConfirmation(t *testing.T) {
	cfg, before := config(t), raw(t)
	defer put(t, rmem, strings.Split(before, "\n")[0])
	changes, err := Changes([]plan.Setting{{Name: rmem, Where: procPath(rmem), Value: "4096 131072 67108864"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	shown := must.Get(Preview(cfg, changes))(t)
	asked := cfg
	asked.Check = func(would []Did) error { return Agreed(shown, would) }

	put(t, rmem, "4096 131072 536870912")
	if got := must.Get(applied(asked, changes...))(t); outcomes(got) != "unchanged" ||
		*got[0].Took != "4096 131072 536870912" {
		t.Errorf("under a larger maximum: %+v", got)
	}
	put(t, rmem, "8192 131072 6291456")
	var moved *MovedError
	if _, err := applied(asked, changes...); !errors.As(err, &moved) || moved.Try() == "" || !strings.Contains(err.Error(),
		"8192 131072 6291456") {
		t.Errorf("the change differs from the confirmed one: %v", err)
	}
	if !strings.HasPrefix(raw(t), "8192\t131072\t6291456\n") || is(t, cfg) != "" {
		t.Errorf("changed nevertheless: %s%s", raw(t), is(t, cfg))
	}
	put(t, rmem, *shown[0].Old)
	must.Get(applied(asked, changes...))(t)
	must.Get(undone(cfg))(t)
	settled(t, cfg, before)
}

// TestApply_ChecksUnderLock checks that no other process can change the host between the check and the change.
func TestApply_ChecksUnderLock(t *testing.T) {
	cfg, before := config(t), raw(t)
	checked := cfg
	checked.Check = func([]Did) error {
		other := cfg
		other.Wait = time.Millisecond
		if _, err := Apply(context.Background(), other, []Change{Set(Sysctl, sack, "0")}); !errors.Is(err, ErrBusy) {
			t.Errorf("another apply during the check: %v", err)
		}
		return errors.New("not today")
	}
	if _, err := applied(checked, wanted()...); err == nil || err.Error() != "not today" {
		t.Errorf("a check that refuses: %v", err)
	}
	settled(t, cfg, before)
}

func TestBufferBytes(t *testing.T) {
	value := func(s string) *string { return &s }
	dids := []Did{{Kind: Sysctl, Name: rmem, New: value("1 2 3000")}, {Kind: Sysctl, Name: "net.core.rmem_max",
		New: value("2000")},
		{Kind: Sysctl, Name: wmem, New: value("1 2 500")}, {Kind: Sysctl, Name: sack, New: value("1")},
		{Kind: Sysctl, Name: wmem},
		{Kind: Sysctl, Name: wmem, New: value("1 2 99999"), Outcome: Unchanged}, {Kind: Sysctl, Name: wmem, New: value("")}}
	if got := BufferBytes(dids); got != 3500 {
		t.Errorf("%d bytes", got)
	}
}

// TestChanges_AcceptsPlans checks that plans for this system pass the checks.
func TestChanges_AcceptsPlans(t *testing.T) {
	path := plan.Path{RateBps: 1e9, RTT: 100 * time.Millisecond, MSS: 1448}
	for _, opt := range []plan.Options{{Role: plan.Both}, {Role: plan.Both, Route: plan.Route{Prefix: "10.0.0.0/8",
		InitCwnd: 30,
		InitRwnd: 30, Congestion: "reno", Clamp: true}}} {
		target := must.Get(plan.ParseTarget("linux"))(t)
		p := must.Get(plan.New(path, target, opt))(t)
		if changes, err := Changes(p.Settings, p.Route.Prefix); err != nil || len(changes) != len(p.Settings) {
			t.Errorf("%v: %+v", err, p.Settings)
		}
	}
}
