package watch

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func TestParseTarget(t *testing.T) {
	lookup := func(host string) ([]netip.Addr, error) {
		if host != "backup.example.org" {
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7")}, nil
	}
	runs := func(name string) bool { return !strings.Contains(name, "example") }
	conn := Snapshot{Local: netip.MustParseAddrPort("198.51.100.1:50000"),
		Remote: netip.MustParseAddrPort("192.0.2.7:443")}
	six := Snapshot{Local: netip.MustParseAddrPort("[2001:db8::1]:22"),
		Remote: netip.MustParseAddrPort("[2001:db8::7]:51000")}
	rsync := Owner{PID: 4242, Program: "rsync", Unit: "backup.service", Container: "0123456789ab"}
	for _, c := range []struct {
		target string
		fits   [2]bool // conn and six, both of rsync
	}{
		{"4242", [2]bool{true, true}}, {"4243", [2]bool{false, false}}, {":443", [2]bool{true, false}},
		{":22", [2]bool{false, true}},
		{"192.0.2.7", [2]bool{true, false}}, {"192.0.2.7:443", [2]bool{true, false}}, {"192.0.2.7:80", [2]bool{false, false}},
		{"2001:db8::7", [2]bool{false, true}}, {"[2001:db8::7]:22", [2]bool{false, true}},
		{"192.0.2.0/24", [2]bool{true, false}},
		{"backup.example.org", [2]bool{true, true}}, {"backup.example.org:443", [2]bool{true, false}},
		{"rsync", [2]bool{true, true}}, {"backup", [2]bool{true, true}}, {"backup.service", [2]bool{true, true}},
		{"nginx.service", [2]bool{false, false}}, {"ssh", [2]bool{false, false}}, {"0123456789ab", [2]bool{true, true}},
		{"0123456789ab" + strings.Repeat("0", 52), [2]bool{true, true}},
		{"0123456789a", [2]bool{true, true}}, {"0123456789ac", [2]bool{false, false}},
	} {
		m, err := ParseTarget(c.target, runs, lookup)
		if err != nil {
			t.Errorf("%s: %v", c.target, err)
			continue
		}
		for i, snap := range []Snapshot{conn, six} {
			if got := m.ends(snap.Local, snap.Remote) && m.owner(rsync); got != c.fits[i] {
				t.Errorf("%s and %v: %v", c.target, snap.Remote, got)
			}
		}
	}
	for _, bad := range []string{":0", ":99999", ":", "host.example:x", "nowhere.example"} {
		if m, err := ParseTarget(bad, runs, lookup); err == nil {
			t.Errorf("%q was read as %+v", bad, m)
		}
	}
}

// TestMatch_WindowsProgramNames checks that Windows programs match with and without .exe, in upper and lower case.
func TestMatch_WindowsProgramNames(t *testing.T) {
	for target, want := range map[string]bool{"chrome": true, "Chrome.exe": true, "CHROME": true, "chrome.com": false,
		"firefox.exe": false} {
		m, err := ParseTarget(target, nil, func(string) ([]netip.Addr, error) { return nil, errors.New("looked up") })
		if got := err == nil && m.owner(Owner{PID: 1, Program: "chrome.EXE"}); got != want {
			t.Errorf("%s: %v (%v)", target, got, err)
		}
	}
	if (&Match{Name: "Rsync"}).owner(Owner{PID: 1, Program: "rsync"}) {
		t.Error("rsync is Rsync")
	}
}

// TestMatch_ContainerIDPrefix checks that the first four or more digits of a container ID match.
func TestMatch_ContainerIDPrefix(t *testing.T) {
	owner := Owner{Program: "nc", Container: "0123456789ab"}
	for id, want := range map[string]bool{"0123": true, "012": false, "0124": false, "0123456789ab": true,
		"0123456789ab" + strings.Repeat("c", 52): true, "0123456789ac" + strings.Repeat("c", 52): false} {
		if got := (&Match{Container: id}).owner(owner); got != want {
			t.Errorf("%s: %v", id, got)
		}
	}
	if (&Match{Container: "0123"}).owner(Owner{Program: "nc"}) {
		t.Error("a program in no container is in one")
	}
}

func TestLocalConnectionsAreLeftOut(t *testing.T) {
	within := Snapshot{Local: netip.MustParseAddrPort("10.0.0.1:1"), Remote: netip.MustParseAddrPort("10.0.0.1:2")}
	loop := Snapshot{Local: netip.MustParseAddrPort("127.0.0.1:1"), Remote: netip.MustParseAddrPort("127.0.0.9:2")}
	for _, snap := range []Snapshot{within, loop} {
		if (&Match{}).ends(snap.Local, snap.Remote) || !(&Match{Local: true}).ends(snap.Local, snap.Remote) {
			t.Errorf("%v → %v", snap.Local, snap.Remote)
		}
	}
}

func TestUnitOf(t *testing.T) {
	id := strings.Repeat("0123456789abcdef", 4)
	for path, want := range map[string][2]string{
		"/": {}, "/system.slice/nginx.service": {"nginx.service", ""},
		"/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope": {"app-x.scope", ""},
		"/system.slice/docker-" + id + ".scope":                               {"docker-" + id + ".scope", id[:12]},
		"/kubepods.slice/kubepods-pod1.slice/cri-containerd-" + id + ".scope": {"cri-containerd-" + id + ".scope", id[:12]},
		"/docker/" + id + "/init.scope":                                       {"init.scope", id[:12]},
		"/docker/" + id:                                                       {"", id[:12]},
	} {
		if unit, container := unitOf(path); unit != want[0] || container != want[1] {
			t.Errorf("%s: %q %q", path, unit, container)
		}
	}
}

// FuzzParseTarget checks that any target is refused or selects something.
func FuzzParseTarget(f *testing.F) {
	for _, text := range []string{"1234", ":443", "host:80", "192.0.2.0/24", "[::1]:5201", "nginx.service", "a.b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseTarget(text, func(name string) bool { return len(name)%2 == 0 },
			func(string) ([]netip.Addr, error) { return []netip.Addr{netip.IPv6Loopback()}, nil })
		if err == nil && text != "" && !m.owned() && len(m.Ports) == 0 && len(m.Hosts) == 0 {
			t.Errorf("%q asks for everything", text)
		}
	})
}
