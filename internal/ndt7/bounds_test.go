package ndt7

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestServer_EnforcesLimits(t *testing.T) {
	now := time.Unix(1e9, 0)
	g := newQuotas(Limits{Tests: 3, TestsPerAddress: 2, BytesPerDay: 1000})
	one, other := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::/64")
	tests := map[netip.Prefix]*admission.Entry{} // the last test of each address
	admit := func(host netip.Prefix) bool {
		test := &admission.Entry{Host: host}
		if g.admit(test, now) != nil {
			return false
		}
		tests[host] = test
		return true
	}
	for i, c := range []struct {
		host netip.Prefix
		want bool
	}{{one, true}, {one, true}, {one, false}, {other, true}, {other, false}} {
		if got := admit(c.host); got != c.want {
			t.Errorf("place %d: %v", i, got)
		}
	}
	g.tests.Release(tests[one])
	if !admit(one) {
		t.Error("a place that was left")
	}
	last := tests[one]
	g.tests.Release(last)
	for range 2 { // check takes no slot
		if err := g.check(one, now); err != nil {
			t.Error(err)
		}
	}
	if !g.addBytes(last, 999, now) || g.addBytes(last, 1, now) || admit(one) {
		t.Error("bytes of a day")
	}
	var no *Refusal
	if err := g.check(one, now.Add(23*time.Hour)); !errors.As(err, &no) || no.After != time.Hour ||
		no.Status() != http.StatusTooManyRequests || no.Try() != "again in 60 minutes" {
		t.Errorf("%v", err)
	}
	now = now.Add(24 * time.Hour)
	if !admit(one) {
		t.Error("the next day")
	}
}

func TestQuotas_ManyAddresses(t *testing.T) {
	now := time.Unix(1e9, 0)
	g := newQuotas(Limits{Tests: 3, TestsPerAddress: 2, BytesPerDay: 2 * forgettableBytes})
	at := func(i int) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
	}
	for i := range maxAccounts + 10 {
		test := &admission.Entry{Host: at(i)}
		if err := g.admit(test, now); err != nil {
			t.Fatal(i, err)
		}
		if i == 5 {
			g.addBytes(test, 2*forgettableBytes, now)
		}
		g.tests.Release(test)
	}
	if g.check(at(5), now) == nil || len(g.accounts) > maxAccounts {
		t.Errorf("%d are known", len(g.accounts))
	}
}

func TestServer_EnforcesDailyQuota(t *testing.T) {
	s := serve(t, false, Config{Bounds: Limits{BytesPerDay: 1 << 20}})
	p := s.peer(t)
	spec := transfer.Spec{Direction: transfer.Down, Time: 10 * time.Second}
	transfer.Run(t.Context(), p, spec, nil) // in any case
	if one := <-s.done; !errors.Is(one.Err, errDayUsed) {
		t.Errorf("%v", one.Err)
	}
	var no *NoServer
	if _, err := transfer.Run(t.Context(), p, spec, nil); !errors.As(err, &no) || no.Status != http.StatusTooManyRequests {
		t.Errorf("%v", err)
	}
}

func TestServer_BarsMisbehavingClient(t *testing.T) {
	now := time.Unix(1e9, 0)
	g := newQuotas(Limits{Tests: 3, TestsPerAddress: 2, BytesPerDay: 1000})
	one, other := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::/64")
	g.bar(one, now)
	var no *Refusal
	if err := g.check(one, now.Add(barTime/2)); !errors.As(err, &no) || no.After != barTime/2 ||
		no.Status() != http.StatusServiceUnavailable {
		t.Errorf("%v", err)
	}
	if g.check(other, now) != nil || g.check(one, now.Add(barTime)) != nil {
		t.Error("another address, or the same one later")
	}
}

// TestQuotas_EvictsStalledTests fills all slots from four addresses. A fifth one gets the slot of the test that
// stalled first.
func TestQuotas_EvictsStalledTests(t *testing.T) {
	now := time.Unix(1e9, 0)
	g := newQuotas(Limits{BytesPerDay: 1000})
	var tests []*admission.Entry
	evicted := -1
	for i := range 16 {
		test := &admission.Entry{Host: admission.Host(netip.AddrFrom4([4]byte{192, 0, 2, byte(i / 4)})),
			Evict: func() { evicted = i }}
		must.Do(t, g.admit(test, now))
		tests = append(tests, test)
	}
	now = now.Add(g.limits.IdleTimeout - 1)
	for i, test := range tests {
		if i != 7 && i != 9 {
			g.addBytes(test, 1, now)
		}
	}
	g.addBytes(tests[9], 1, now.Add(-1))
	newcomer := admission.Host(netip.MustParseAddr("198.51.100.1"))
	if err := g.check(newcomer, now); err == nil {
		t.Error("a test that moved something makes room")
	}
	now = now.Add(g.limits.IdleTimeout)
	if err := g.admit(&admission.Entry{Host: newcomer}, now.Add(-1)); err != nil || evicted != 7 {
		t.Errorf("%v, evicted %d; want 7", err, evicted)
	}
}

// TestServer_EvictsIdleTests fills all slots from two addresses with tests that move nothing and refill each freed
// slot. A dozen other clients are served meanwhile, four at a time.
func TestServer_EvictsIdleTests(t *testing.T) {
	// A test on a busy machine may move nothing for 3 s, so only tests of the busiest address are evicted here.
	s := serve(t, false, Config{Bounds: Limits{IdleTimeout: time.Minute}})
	go func() {
		for {
			select {
			case <-t.Context().Done():
				return
			case test := <-s.done:
				if errors.Is(test.Err, errEvicted) && test.Client.Addr().As4()[2] == 1 {
					t.Errorf("a test of %v was evicted", test.Client)
				}
			}
		}
	}()
	open := func(ctx context.Context, from, test string) (*websocket.Conn, error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		client := &http.Client{Transport: &http.Transport{DialContext: d.DialContext, DisableKeepAlives: true}}
		ws, _, err := websocket.Dial(ctx, "ws://"+s.address+"/ndt/v7/"+test, &websocket.DialOptions{HTTPClient: client,
			Subprotocols: []string{Protocol}})
		return ws, err
	}
	attack, stop := context.WithCancel(t.Context())
	var attackers sync.WaitGroup
	defer attackers.Wait()
	defer stop()
	var taken sync.WaitGroup
	for n := range 16 {
		taken.Add(1)
		attackers.Go(func() {
			first := sync.OnceFunc(taken.Done)
			defer first()
			for attack.Err() == nil {
				ws, err := open(attack, fmt.Sprintf("127.0.0.%d", 2+n%2), "upload")
				if first(); err != nil {
					continue
				}
				for err == nil {
					_, _, err = ws.Read(attack)
				}
				ws.CloseNow()
			}
		})
	}
	taken.Wait()
	var others sync.WaitGroup
	for host := range 4 {
		others.Go(func() {
			for n := range 3 {
				ws, err := open(t.Context(), fmt.Sprintf("127.0.1.%d", 1+host), "download?fullpipe_ms=500")
				if err != nil {
					t.Errorf("test %d of address %d: %v", n+1, host+1, err)
					return
				}
				ws.SetReadLimit(maxMessage)
				for err == nil {
					_, _, err = ws.Read(t.Context())
				}
				ws.CloseNow()
			}
		})
	}
	others.Wait()
}
