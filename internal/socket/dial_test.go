//go:build !portable

package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func ports(texts ...string) (all []netip.AddrPort) {
	for _, text := range texts {
		all = append(all, netip.AddrPortFrom(netip.MustParseAddr(text), 5201))
	}
	return all
}

func TestFamiliesInTurn(t *testing.T) {
	for _, tt := range []struct{ in, want []netip.AddrPort }{
		{ports("::1"), ports("::1")},
		{ports("::1", "::2", "::3", "1.1.1.1", "2.2.2.2"), ports("::1", "1.1.1.1", "::2", "2.2.2.2", "::3")},
		{ports("1.1.1.1", "2.2.2.2", "::1"), ports("1.1.1.1", "::1", "2.2.2.2")},
	} {
		if got := inTurn(tt.in); !slices.Equal(got, tt.want) {
			t.Errorf("%v: %v, want %v", tt.in, got, tt.want)
		}
	}
}

// reply is a host's address in a race: its result and after what time it comes.
type reply struct {
	after time.Duration // 0: at once; <0: never
	err   error
}

// TestRace checks the order and the delays of RFC 8305 section 5 on a virtual clock.
func TestRace(t *testing.T) {
	refused := reply{err: syscall.ECONNREFUSED}
	silent := reply{after: -1}
	const patience = 10 * time.Second
	for name, c := range map[string]struct {
		replies []reply
		began   []time.Duration // of each attempt
		won     int             // -1: none
		took    time.Duration
	}{
		"the first connects": {[]reply{{after: 20 * time.Millisecond}, {}}, []time.Duration{0}, 0,
			20 * time.Millisecond},
		"the first is refused": {[]reply{refused, {after: time.Millisecond}}, []time.Duration{0, 0}, 1,
			time.Millisecond},
		"the first is a black hole": {[]reply{silent, {after: 30 * time.Millisecond}},
			[]time.Duration{0, 250 * time.Millisecond}, 1, 280 * time.Millisecond},
		"the first is only slow": {[]reply{{after: 300 * time.Millisecond}, {after: time.Second}},
			[]time.Duration{0, 250 * time.Millisecond}, 0, 300 * time.Millisecond},
		"two black holes": {[]reply{silent, silent, {}}, []time.Duration{0, 250 * time.Millisecond,
			500 * time.Millisecond}, 2, 500 * time.Millisecond},
		"a refusal while another waits": {[]reply{silent, refused, {}}, []time.Duration{0, 250 * time.Millisecond,
			500 * time.Millisecond}, 2, 500 * time.Millisecond},
		"all are refused":                {[]reply{refused, refused}, []time.Duration{0, 0}, -1, 0},
		"one is refused, one black hole": {[]reply{refused, silent}, []time.Duration{0, 0}, -1, patience},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				start := time.Now()
				all := ports("2001:db8::1", "192.0.2.1", "2001:db8::2")[:len(c.replies)]
				began := make([]time.Duration, len(all))
				conns := make([]*net.TCPConn, len(all))
				tried := 0
				var mu sync.Mutex // guards what the attempts leave
				won, err := race(ctx, "host:5201", all, attemptDelay, func(ctx context.Context, to netip.AddrPort) (*net.TCPConn,
					error) {
					i := slices.Index(all, to)
					mu.Lock()
					began[i], tried = time.Since(start), tried+1
					mu.Unlock()
					a := c.replies[i]
					if a.after < 0 {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					select {
					case <-time.After(a.after):
					case <-ctx.Done():
						return nil, ctx.Err()
					}
					mu.Lock()
					defer mu.Unlock()
					conns[i] = &net.TCPConn{}
					return conns[i], a.err
				})
				if tried != len(c.began) || !slices.Equal(began[:tried], c.began) || time.Since(start) != c.took {
					t.Errorf("began at %v of %d, over after %v", began, tried, time.Since(start))
				}
				if c.won >= 0 {
					if err != nil || won != conns[c.won] {
						t.Errorf("another one won, or none: %v", err)
					}
					return
				}
				var failed *DialError
				if !errors.As(err, &failed) || len(failed.Attempts) != len(all) {
					t.Fatalf("%v", err)
				}
				for _, a := range all {
					if !strings.Contains(err.Error(), a.Addr().String()) {
						t.Errorf("%q does not name %v", err, a.Addr())
					}
				}
			})
		})
	}
}

// TestOneFamilyListens connects to a host that listens on one of its addresses.
func TestOneFamilyListens(t *testing.T) {
	testenv.Need(t, testenv.IPv6)
	for network, address := range map[string]string{"tcp4": "127.0.0.1", "tcp6": "::1"} {
		l := must.Get(net.Listen(network, net.JoinHostPort(address, "0")))(t)
		defer l.Close()
		at := l.Addr().(*net.TCPAddr).AddrPort()
		for _, order := range [][]string{{"127.0.0.1", "::1"}, {"::1", "127.0.0.1"}} {
			var all []netip.AddrPort
			for _, a := range order {
				all = append(all, netip.AddrPortFrom(netip.MustParseAddr(a), at.Port()))
			}
			conn, err := race(t.Context(), "host", all, attemptDelay, func(ctx context.Context, to netip.AddrPort) (*net.TCPConn,
				error) {
				return Dial(ctx, to.String(), Options{})
			})
			if err != nil {
				t.Fatalf("%s, %v first: %v", network, order[0], err)
			}
			if conn.RemoteAddr().String() != at.String() {
				t.Errorf("connected to %v", conn.RemoteAddr())
			}
			conn.Close()
		}
	}
}

func TestRoutes(t *testing.T) {
	l := must.Get(net.Listen("tcp4", "127.0.0.1:0"))(t)
	defer l.Close()
	address := l.Addr().String()
	for _, tt := range []struct {
		bind   string
		family int
		to     string
		from   string // or
		fails  string
	}{
		{bind: "127.0.0.9", to: address, from: "127.0.0.9"},
		{bind: "lo", to: address, from: "127.0.0.1"},
		{family: 4, to: address, from: "127.0.0.1"},
		{family: 6, to: address, fails: "127.0.0.1 is no IPv6 address"},
		{bind: "::1", to: address, fails: "127.0.0.1 is no IPv6 address"},
		{bind: "192.0.2.77", to: address, fails: "192.0.2.77 to send from"},
		{bind: "no-such0", to: address, fails: "no-such0"},
	} {
		t.Run(fmt.Sprint(tt.bind, tt.family), func(t *testing.T) {
			route := must.Get(ParseRoute(tt.bind, tt.family))(t)
			if route.Device != "" {
				testenv.Need(t, testenv.Linux) // macOS names its loopback lo0
			}
			conn, err := Dial(t.Context(), tt.to, Options{Route: route})
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Fatalf("%v, want %q", err, tt.fails)
				}
				var hint interface{ Try() string }
				if !errors.As(err, &hint) || hint.Try() == "" {
					t.Error("no hint")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if from := conn.LocalAddr().(*net.TCPAddr).IP.String(); from != tt.from {
				t.Errorf("from %s, want %s", from, tt.from)
			}
			flow := must.Get(DialFlow(t.Context(), tt.to, FlowOptions{Route: route}))(t)
			defer flow.Close()
			if from := flow.Local().Addr().String(); from != tt.from {
				t.Errorf("UDP from %s, want %s", from, tt.from)
			}
		})
	}
	for bind, family := range map[string]int{"a/b": 0, "eth0:5201": 0, "192.0.2.1": 6, "2001:db8::1": 4} {
		if r, err := ParseRoute(bind, family); err == nil {
			t.Errorf("%s with IPv%d: %+v", bind, family, r)
		}
	}
}

func FuzzParseRoute(f *testing.F) {
	f.Add("192.0.2.1")
	f.Add("fe80::1%eth0")
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := ParseRoute(text, 0); err == nil && text != "" && r.From.IsValid() == (r.Device != "") {
			t.Fatalf("%q: %+v", text, r)
		}
	})
}
