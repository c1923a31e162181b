package ndt7

import (
	"errors"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestBounds(t *testing.T) {
	now := time.Unix(1e9, 0)
	g := guard{bounds: Bounds{Tests: 3, OfOne: 2, BytesADay: 1000}}
	one, other := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::/64")
	admit := func(who netip.Prefix) bool { return g.admit(who, now) == nil }
	for i, c := range []struct {
		who  netip.Prefix
		want bool
	}{{one, true}, {one, true}, {one, false}, {other, true}, {other, false}} {
		if got := admit(c.who); got != c.want {
			t.Errorf("place %d: %v", i, got)
		}
	}
	g.leave(one)
	if !admit(one) {
		t.Error("a place that was left")
	}
	g.leave(one)
	for range 2 { // asking takes no place
		if err := g.may(one, now); err != nil {
			t.Error(err)
		}
	}
	if !g.spend(one, 999) || g.spend(one, 1) || admit(one) {
		t.Error("bytes of a day")
	}
	var no *Refusal
	if err := g.admit(one, now.Add(23*time.Hour)); !errors.As(err, &no) || no.After != time.Hour ||
		no.Status() != http.StatusTooManyRequests || no.Try() != "again in 60 minutes" {
		t.Errorf("%v", err)
	}
	if now = now.Add(24 * time.Hour); !admit(one) {
		t.Error("the next day")
	}
}

func TestManyAddresses(t *testing.T) {
	now := time.Unix(1e9, 0)
	g := guard{bounds: Bounds{Tests: 3, OfOne: 2, BytesADay: 2 * little}}
	at := func(i int) netip.Prefix {
		return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
	}
	for i := range mostKnown + 10 {
		if err := g.admit(at(i), now); err != nil {
			t.Fatal(i, err)
		}
		if i == 5 {
			g.spend(at(i), 2*little)
		}
		g.leave(at(i))
	}
	if g.admit(at(5), now) == nil || len(g.known) > mostKnown {
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
	g := guard{bounds: Bounds{Tests: 3, OfOne: 2, BytesADay: 1000}}
	one, other := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::/64")
	if err := g.admit(one, now); err != nil {
		t.Fatal(err)
	}
	g.bar(one, now)
	g.leave(one)
	var no *Refusal
	if err := g.admit(one, now.Add(barTime/2)); !errors.As(err, &no) || no.After != barTime/2 ||
		no.Status() != http.StatusServiceUnavailable {
		t.Errorf("%v", err)
	}
	if g.admit(other, now) != nil || g.admit(one, now.Add(barTime)) != nil {
		t.Error("another address, or the same one later")
	}
}
