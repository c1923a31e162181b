package admission

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func TestHost(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7": "192.0.2.7/32", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"2001:db8:1:2::9": "2001:db8:1:2::/64", "fe80::1%lo": "fe80::/64",
	} {
		if got := Host(netip.MustParseAddr(text)).String(); got != want {
			t.Errorf("%s counts as %s; want %s", text, got, want)
		}
	}
}

var epoch = time.Unix(1e9, 0)

// client parses an entry such as "a idle=3 streams=64 user pinned": host, seconds since it became idle, load and
// rank.
func client(t *testing.T, text string) *Entry {
	t.Helper()
	words := strings.Fields(text)
	e := &Entry{Host: Host(netip.AddrFrom4([4]byte{192, 0, 2, words[0][0]}))}
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		n := int64(0)
		for _, digit := range value {
			n = 10*n + int64(digit-'0')
		}
		switch name {
		case "idle":
			e.ActiveUntil = epoch.Add(time.Duration(-n) * time.Second)
		case "fresh":
			e.ActiveUntil = epoch.Add(1)
		case "pinned":
			e.Pinned = true
		case "user":
			e.Rank = User
		case "key":
			e.Rank = KeyHolder
		case "streams":
			e.Load[Streams] = n
		case "buffers":
			e.Load[Buffers] = n
		default:
			t.Fatalf("%q in %q", w, text)
		}
	}
	return e
}

func total(places int64) Limits { return Limits{Total: Load{places}} }

// TestTable_Eviction admits clients that fit, then a newcomer, and compares the evicted entries.
func TestTable_Eviction(t *testing.T) {
	perHost, streams := Limits{Total: Load{9}, PerHost: Load{2}}, Limits{Total: Load{0, 8}}
	buffers := Limits{Total: Load{0, 0, 100}}
	for _, c := range []struct {
		name     string
		limits   Limits
		present  []string
		newcomer string
		evicted  []int
		err      error
	}{
		{"fits", total(2), []string{"a"}, "a", nil, nil},
		{"no limits", Limits{}, []string{"a", "a", "a"}, "a", nil, nil},
		{"active clients of one place each stay", total(2), []string{"a", "b"}, "c", nil, ErrFull},
		{"the oldest of the busiest host", total(4), []string{"b", "a", "a", "a"}, "c", []int{1}, nil},
		{"equal shares stay", total(4), []string{"a", "a", "b", "b"}, "b", nil, ErrFull},
		{"a host does not evict its own active clients", total(4), []string{"a", "a", "a", "b"}, "a", nil, ErrFull},
		{"kept places", Limits{Total: Load{4}, ProtectedPerHost: 2}, []string{"a", "a", "b", "b"}, "c", nil, ErrFull},
		{"beyond the protected slots", Limits{Total: Load{4}, ProtectedPerHost: 2},
			[]string{"b", "a", "a", "a"}, "c", []int{1}, nil},
		{"idle before active", total(5), []string{"a", "a", "a", "b", "b idle=1"}, "c", []int{4}, nil},
		{"the longest idle one", total(4), []string{"a idle=2", "b", "a idle=9", "a idle=3"}, "c", []int{2}, nil},
		{"idle clients of equal hosts", total(2), []string{"a idle=0", "b idle=0"}, "c", []int{0}, nil},
		{"an idle client of a less busy host stays", total(3), []string{"a", "a", "b idle=9"}, "a", nil, ErrFull},
		{"an idle client of the newcomer's host", total(3), []string{"a", "a idle=1", "b idle=9"}, "a", []int{1}, nil},
		{"active for another moment", total(1), []string{"a fresh"}, "b", nil, ErrFull},
		{"pinned", total(3), []string{"a pinned idle=9", "a pinned", "a"}, "b", []int{2}, nil},
		{"all pinned", total(2), []string{"a pinned", "a pinned"}, "b", nil, ErrFull},
		{"host full", perHost, []string{"a", "a"}, "a", nil, ErrHostFull},
		{"host full of idle ones", perHost, []string{"b idle=9", "a", "a idle=1"}, "a", []int{2}, nil},
		{"host full, others have room", perHost, []string{"a", "a"}, "b", nil, nil},
		{"higher rank stays", total(3), []string{"a key", "a key idle=9", "a user"}, "b", nil, ErrFull},
		{"lower rank makes room", total(2), []string{"a", "b user"}, "c key", []int{0}, nil},
		{"lowest rank of the busiest host", total(4), []string{"a", "b", "b", "c key idle=9"}, "d key", []int{1}, nil},
		{"lower rank of the newcomer's host", Limits{PerHost: Load{1}}, []string{"a"}, "a user", []int{0}, nil},
		{"streams", streams, []string{"a streams=4", "b", "b", "a streams=3"}, "c streams=2", []int{0}, nil},
		{"streams, two make room", streams, []string{"a streams=4", "a streams=4"}, "b streams=6 idle=0", nil, ErrFull},
		{"streams, idle ones", streams, []string{"a streams=4 idle=1", "b streams=4 idle=2"}, "a streams=4", []int{0}, nil},
		{"streams of one host", Limits{PerHost: Load{0, 4}}, []string{"a streams=3"}, "a streams=2", nil, ErrHostFull},
		{"more streams than one host may have", Limits{PerHost: Load{0, 4}}, nil, "a streams=5", nil, ErrHostFull},
		{"several would make room", buffers,
			[]string{"a buffers=40 idle=2", "a buffers=40 idle=1", "b buffers=20"}, "c buffers=70", nil, ErrFull},
		{"several make room", buffers, []string{"a buffers=10 idle=2", "a buffers=10 idle=1", "a buffers=80"}, "c buffers=20",
			[]int{0, 1}, nil},
		{"one of several is enough", buffers,
			[]string{"a buffers=30 idle=2", "a buffers=30 idle=1", "a buffers=30"}, "c buffers=30", []int{0}, nil},
	} {
		var evicted []int
		table := Table{Limits: c.limits}
		for i, text := range c.present {
			e := client(t, text)
			e.Evict = func() { evicted = append(evicted, i) }
			if err := table.Admit(e, epoch); err != nil {
				t.Fatalf("%s: client %d: %v", c.name, i, err)
			}
		}
		e := client(t, c.newcomer)
		if err := table.Check(e, epoch); !errors.Is(err, c.err) || len(evicted) > 0 {
			t.Errorf("%s: check %v, evicted %v", c.name, err, evicted)
		}
		err := table.Admit(e, epoch)
		if want := c.evicted; c.err != nil {
			if !errors.Is(err, c.err) || evicted != nil {
				t.Errorf("%s: %v, evicted %v; want %v", c.name, err, evicted, c.err)
			}
		} else if err != nil || !slices.Equal(evicted, want) {
			t.Errorf("%s: %v, evicted %v; want %v", c.name, err, evicted, want)
		}
	}
}

func TestTable_Release(t *testing.T) {
	table := Table{Limits: total(2)}
	first, second := client(t, "a streams=3"), client(t, "a")
	for _, e := range []*Entry{first, second} {
		must.Do(t, table.Admit(e, epoch))
	}
	if got := table.LoadOf(first.Host); got != (Load{2, 3}) {
		t.Errorf("the host has %v", got)
	}
	for range 2 { // the second call has no effect
		table.Release(first)
	}
	if got := table.LoadOf(first.Host); got != (Load{1}) || len(table.entries) != 1 {
		t.Errorf("the host has %v", got)
	}
	table.Release(second)
	if len(table.hosts) != 0 || table.total != (Load{}) {
		t.Errorf("left: %v, %v", table.hosts, table.total)
	}
}

// Progress keeps an entry active; without it the entry becomes idle.
func TestTable_Extend(t *testing.T) {
	table := Table{Limits: total(1)}
	gone := false
	e := client(t, "a fresh")
	e.Evict = func() { gone = true }
	must.Do(t, table.Admit(e, epoch))
	newcomer := client(t, "b")
	table.Extend(e, time.Time{})
	if err := table.Check(newcomer, epoch.Add(time.Hour)); err != ErrFull {
		t.Errorf("for good: %v", err)
	}
	table.Extend(e, epoch.Add(time.Minute))
	table.Pin(e, true)
	if err := table.Check(newcomer, epoch.Add(time.Minute)); err != ErrFull {
		t.Errorf("pinned: %v", err)
	}
	table.Pin(e, false)
	if err := table.Admit(newcomer, epoch.Add(time.Minute-1)); err != ErrFull || gone {
		t.Errorf("before: %v, gone %v", err, gone)
	}
	if err := table.Admit(newcomer, epoch.Add(time.Minute)); err != nil || !gone {
		t.Errorf("after: %v, gone %v", err, gone)
	}
}

type closer struct{ closed bool }

func (c *closer) Close() error { c.closed = true; return nil }

// Entries of a crowded host are evicted for other hosts and for its own newcomers, oldest first.
func TestTable_Pending(t *testing.T) {
	table := Table{Limits: total(3)}
	var conns []*closer
	arrive := func(host string) (done func()) {
		conns = append(conns, &closer{})
		now := epoch.Add(time.Duration(len(conns)) * time.Second)
		return table.Pending(conns[len(conns)-1], netip.MustParsePrefix(host), now)
	}
	closed := func() (all []int) {
		for i, c := range conns {
			if c.closed {
				all = append(all, i)
			}
		}
		return all
	}
	const crowd, quiet = "192.0.2.1/32", "192.0.2.2/32"
	for _, host := range []string{crowd, crowd, quiet, crowd, crowd} {
		arrive(host)
	}
	if got := closed(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("closed: %v", got)
	}
	arrive(quiet)()
	if got := closed(); !slices.Equal(got, []int{0, 1, 2}) || len(table.entries) != 2 {
		t.Errorf("closed: %v, %d are left", got, len(table.entries))
	}
	for i := range byte(2) { // as many hosts as slots
		arrive(netip.PrefixFrom(netip.AddrFrom4([4]byte{203, 0, 113, i}), 32).String())
	}
	if got := closed(); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Errorf("closed: %v", got)
	}
}
