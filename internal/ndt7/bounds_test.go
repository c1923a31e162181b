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
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestBounds(t *testing.T) {
	now := time.Unix(1e9, 0)
	g := newGuard(Bounds{Tests: 3, OfOne: 2, BytesADay: 1000})
	one, other := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::/64")
	tests := map[netip.Prefix]*admission.Entry{} // the last of each address
	admit := func(who netip.Prefix) bool {
		test := &admission.Entry{Host: who}
		if g.admit(test, now) != nil {
			return false
		}
		tests[who] = test
		return true
	}
	for i, c := range []struct {
		who  netip.Prefix
		want bool
	}{{one, true}, {one, true}, {one, false}, {other, true}, {other, false}} {
		if got := admit(c.who); got != c.want {
			t.Errorf("place %d: %v", i, got)
		}
	}
	g.tests.Release(tests[one])
	if !admit(one) {
		t.Error("a place that was left")
	}
	last := tests[one]
	g.tests.Release(last)
	for range 2 { // asking takes no place
		if err := g.may(one, now); err != nil {
			t.Error(err)
		}
	}
	if !g.spend(last, 999, now) || g.spend(last, 1, now) || admit(one) {
		t.Error("bytes of a day")
	}
	var no *Refusal
	if err := g.may(one, now.Add(23*time.Hour)); !errors.As(err, &no) || no.After != time.Hour ||
		no.Status() != http.StatusTooManyRequests || no.Try() != "again in 60 minutes" {
		t.Errorf("%v", err)
	}
	if now = now.Add(24 * time.Hour); !admit(one) {
		t.Error("the next day")
	}
}

func TestManyAddresses(t *testing.T) {
	now := time.Unix(1e9, 0)
	g := newGuard(Bounds{Tests: 3, OfOne: 2, BytesADay: 2 * little})
	at := func(i int) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
	}
	for i := range mostKnown + 10 {
		test := &admission.Entry{Host: at(i)}
		if err := g.admit(test, now); err != nil {
			t.Fatal(i, err)
		}
		if i == 5 {
			g.spend(test, 2*little, now)
		}
		g.tests.Release(test)
	}
	if g.may(at(5), now) == nil || len(g.known) > mostKnown {
		t.Errorf("%d are known", len(g.known))
	}
}

func TestBytesOfADayEndATest(t *testing.T) {
	s := serve(t, false, Config{Bounds: Bounds{BytesADay: 1 << 20}})
	p := s.peer(t)
	spec := transfer.Spec{Direction: transfer.Down, Time: 10 * time.Second}
	transfer.Run(t.Context(), p, spec, nil) // however it ends
	if one := <-s.done; !errors.Is(one.Err, errDayUsed) {
		t.Errorf("%v", one.Err)
	}
	var no *NoServer
	if _, err := transfer.Run(t.Context(), p, spec, nil); !errors.As(err, &no) || no.Status != http.StatusTooManyRequests {
		t.Errorf("%v", err)
	}
}

func TestAFoulClientIsBarred(t *testing.T) {
	now := time.Unix(1e9, 0)
	g := newGuard(Bounds{Tests: 3, OfOne: 2, BytesADay: 1000})
	one, other := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::/64")
	g.bar(one, now)
	var no *Refusal
	if err := g.may(one, now.Add(barTime/2)); !errors.As(err, &no) || no.After != barTime/2 ||
		no.Status() != http.StatusServiceUnavailable {
		t.Errorf("%v", err)
	}
	if g.may(other, now) != nil || g.may(one, now.Add(barTime)) != nil {
		t.Error("another address, or the same one later")
	}
}

// TestGuard_StalledTestsMakeRoom has four addresses take all places. A fifth one gets the place of a
// test that has moved nothing for a while, of those that stopped first.
func TestGuard_StalledTestsMakeRoom(t *testing.T) {
	now := time.Unix(1e9, 0)
	g := newGuard(Bounds{BytesADay: 1000})
	var tests []*admission.Entry
	evicted := -1
	for i := range 16 {
		test := &admission.Entry{Host: admission.Host(netip.AddrFrom4([4]byte{192, 0, 2, byte(i / 4)})),
			Evict: func() { evicted = i }}
		if err := g.admit(test, now); err != nil {
			t.Fatal(err)
		}
		tests = append(tests, test)
	}
	now = now.Add(g.bounds.IdleTimeout - 1)
	for i, test := range tests {
		if i != 7 && i != 9 {
			g.spend(test, 1, now)
		}
	}
	g.spend(tests[9], 1, now.Add(-1))
	newcomer := admission.Host(netip.MustParseAddr("198.51.100.1"))
	if err := g.may(newcomer, now); err == nil {
		t.Error("a test that moved something makes room")
	}
	now = now.Add(g.bounds.IdleTimeout)
	if err := g.admit(&admission.Entry{Host: newcomer}, now.Add(-1)); err != nil || evicted != 7 {
		t.Errorf("%v, evicted %d; want 7", err, evicted)
	}
}

// TestServer_IdleTestsKeepNobodyOut has two addresses take all places with tests that move nothing,
// and take each place again that they lose. A dozen others are served meanwhile, four at a time.
func TestServer_IdleTestsKeepNobodyOut(t *testing.T) {
	// A test of a busy machine may move nothing for 3 s: here the address with most tests makes room.
	s := serve(t, false, Config{Bounds: Bounds{IdleTimeout: time.Minute}})
	go func() {
		for {
			select {
			case <-t.Context().Done():
				return
			case test := <-s.done:
				if errors.Is(test.Err, errRoom) && test.Client.Addr().As4()[2] == 1 {
					t.Errorf("a test of %v made room for another", test.Client)
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
				ws.SetReadLimit(mostMessage)
				for err == nil {
					_, _, err = ws.Read(t.Context())
				}
				ws.CloseNow()
			}
		})
	}
	others.Wait()
}
