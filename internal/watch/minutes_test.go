package watch

import (
	"fmt"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Two periods are one group's sums; the time that limited it is that of its connections.
func TestMinutesSumGroups(t *testing.T) {
	var m Minutes
	a := seen("rsync", "192.0.2.7:22", 1000, verdict.Bottleneck)
	b := seen("rsync", "192.0.2.9:22", 500, verdict.Application)
	b.Flows[0].MinRTT = 9 * time.Millisecond
	if got := m.Add(&View{At: 20 * time.Second, Length: 20 * time.Second, Connections: []Observed{a, b},
		Lost: 2}); got != nil {
		t.Fatalf("after 20 s: %+v", got)
	}
	if got := m.Add(&View{At: 40 * time.Second, Length: 20 * time.Second, Connections: []Observed{a},
		Lost: 2}); got != nil {
		t.Fatalf("after 40 s: %+v", got)
	}
	got := m.Add(&View{At: 60 * time.Second, Length: 20 * time.Second, Lost: 5})
	if got == nil || got.Length != units.Duration(time.Minute) || got.At != got.Length || got.LostEnds != 5 ||
		len(got.Groups) != 1 {
		t.Fatalf("%+v", got)
	}
	g := got.Groups[0]
	up := g.Directions[0]
	if g.Owner != "rsync" || g.Network != "192.0.2.0/24" || g.Port != 22 || g.Connections != 2 ||
		up.Direction != transfer.Up || up.Bytes != 2500 || up.RTTMin != units.Duration(9*time.Millisecond) {
		t.Errorf("%+v", g)
	}
	for name, s := range map[string]float64{"bottleneck": 30, "application": 15, "unknown": 15} {
		if got := up.Shares[name] * up.MovingS; math.Abs(got-s) > 1e-9 {
			t.Errorf("%s: %v s, want %v", name, got, s)
		}
	}
	if m.Flush() != nil {
		t.Error("nothing was watched since")
	}
	m.Add(&View{At: 61 * time.Second, Length: time.Second, Lost: 6})
	if rest := m.Flush(); rest == nil || rest.Length != units.Duration(time.Second) || rest.LostEnds != 1 {
		t.Errorf("%+v", rest)
	}
}

// Of too many groups the heaviest keep their names, and no byte is left out.
func TestMinutesFoldTheLighter(t *testing.T) {
	var m Minutes
	v := &View{At: time.Minute, Length: time.Minute}
	sum := int64(0)
	for i := range maxGroupsKept + 300 {
		v.Connections = append(v.Connections, seen("p", fmt.Sprintf("10.%d.%d.1:80", i>>8, i&255), int64(i+1),
			verdict.Bottleneck))
		sum += int64(i + 1)
	}
	got := m.Add(v)
	if len(got.Groups) != maxGroupsReported+1 {
		t.Fatalf("%d groups", len(got.Groups))
	}
	for i := range got.Groups {
		for _, d := range got.Groups[i].Directions {
			sum -= d.Bytes
		}
	}
	if rest := got.Groups[maxGroupsReported]; sum != 0 || rest.Owner != "" || rest.Network != "" || rest.Folded < 1 {
		t.Errorf("%d bytes are missing; the rest is %+v", sum, rest)
	}
}

// A pseudonym stays the same while the watch runs, keeps family and neighbourhood, and is a reserved address.
func TestPseudonyms(t *testing.T) {
	p := newPseudonyms()
	reserved := netip.MustParsePrefix("240.0.0.0/4")
	for _, a := range []string{"198.51.100.7", "198.51.100.8", "203.0.113.7", "198.51.100.7", "2001:db8:1::7",
		"2001:db8:1:2::8", "2001:db8:2::7", "::ffff:198.51.100.8", "127.0.0.1", "::1"} {
		real := netip.MustParseAddr(a)
		made := p.addr(real)
		switch {
		case real.IsLoopback():
			if made != real {
				t.Errorf("%s became %s", real, made)
			}
			continue
		case made != p.addr(real.Unmap()), made.Is4() != real.Unmap().Is4(), made.Is4() && !reserved.Contains(made),
			made.Is6() && !made.IsPrivate():
			t.Errorf("%s became %s", real, made)
		}
	}
	for _, c := range []struct {
		a, b      string
		neighbour bool
	}{{"198.51.100.7", "198.51.100.8", true}, {"198.51.100.7", "203.0.113.7", false},
		{"2001:db8:1::7", "2001:db8:1:2::8", true}, {"2001:db8:1::7", "2001:db8:2::7", false}} {
		a, b := p.addr(netip.MustParseAddr(c.a)), p.addr(netip.MustParseAddr(c.b))
		if a == b || (networkOf(a) == networkOf(b)) != c.neighbour {
			t.Errorf("%s and %s became %s and %s", c.a, c.b, a, b)
		}
	}
	for i := range 2 * maxPseudonyms { // a crowd takes bounded memory, and no name leads back
		a := netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)})
		if made := p.addr(a); !reserved.Contains(made) {
			t.Fatalf("%s became %s", a, made)
		}
	}
	if len(p.hosts) > maxPseudonyms || len(p.networks) > maxPseudonyms {
		t.Errorf("%d hosts, %d networks", len(p.hosts), len(p.networks))
	}
}

// An anonymized view has no real address; the followed connection keeps it.
func TestAnonymizedViews(t *testing.T) {
	a := NewTracker()
	a.EndDump(0)
	snap := Snapshot{Cookie: 1, Local: netip.MustParseAddrPort("10.1.2.3:40000"),
		Remote: netip.MustParseAddrPort("192.0.2.7:22")}
	snap.Sample = transfer.Sample{At: time.Second}
	a.Read(snap)
	snap.Sample = transfer.Sample{At: 2 * time.Second, Acked: 1 << 20, Sent: 1 << 20}
	a.Read(snap)
	v := &View{Length: time.Second}
	a.look(v, v.Length, &Config{Anonymize: true}, func(*Connection) Owner { return Owner{Program: "rsync"} })
	if len(v.Connections) != 1 {
		t.Fatalf("%+v", v)
	}
	shown := v.Connections[0]
	if shown.Local.String() != "240.0.1.1:40000" || shown.Remote.String() != "240.0.2.1:22" ||
		shown.Owner.Program != "rsync" || a.open[1].Remote != snap.Remote {
		t.Errorf("%s, %s, %+v", shown.Local, shown.Remote, shown.Owner)
	}
}
