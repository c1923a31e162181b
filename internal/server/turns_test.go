package server

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// exclusive runs a server that takes one client at a time.
func exclusive(t *testing.T) probe.Far {
	t.Helper()
	c := Config{Address: "127.0.0.1:0", Key: probe.NewKey(), Exclusive: true}
	s, err := New(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return probe.Far{Address: s.Addr().String(), Key: c.Key}
}

// waits connects a client and tells of its places; the channel closes when it has the turn
// or has given up.
func waits(ctx context.Context, far probe.Far) (places chan int, done chan error) {
	places, done = make(chan int, 100), make(chan error, 1)
	far.Waiting = func(place int) { places <- place }
	go func() {
		client, err := far.Connect(ctx)
		if err == nil {
			_, err = transfer.Run(ctx, client, transfer.Spec{Direction: transfer.Up, Bytes: 1000}, nil)
			client.Close()
		}
		close(places)
		done <- err
	}()
	return places, done
}

// Clients have the turn one after the other, in the order in which they came; one that
// vanishes gives its place to those behind it, and one too many of a host is told.
func TestTurns(t *testing.T) {
	far := exclusive(t)
	first, err := far.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, secondDone := waits(t.Context(), far)
	if place := <-second; place != 1 {
		t.Fatalf("the second waits at %d", place)
	}
	ctx, vanish := context.WithCancel(t.Context())
	third, thirdDone := waits(ctx, far)
	if place := <-third; place != 2 {
		t.Fatalf("the third waits at %d", place)
	}
	fourth, fourthDone := waits(t.Context(), far)
	if place := <-fourth; place != 3 {
		t.Fatalf("the fourth waits at %d", place)
	}
	fifth, fifthDone := waits(t.Context(), far)
	<-fifth
	crowd := far
	crowd.Waiting = func(place int) { t.Errorf("one too many of a host waits at %d", place) }
	if _, err := crowd.Connect(t.Context()); err == nil || codeOf(err) != "busy" {
		t.Errorf("one too many of a host: %v", err)
	}
	vanish()
	if err := <-thirdDone; !errors.Is(err, context.Canceled) {
		t.Errorf("who vanished: %v", err)
	}
	if place := <-fourth; place != 2 {
		t.Errorf("behind it: place %d", place)
	}
	first.Close()
	for name, done := range map[string]chan error{"second": secondDone, "fourth": fourthDone, "fifth": fifthDone} {
		if err := <-done; err != nil {
			t.Errorf("the %s: %v", name, err)
		}
	}
}

func codeOf(err error) string {
	var coded interface{ Code() string }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return ""
}

// A client that says something while it waits, or says nothing once it has the turn, does
// not keep others from it.
func TestTurnsAreNotHeld(t *testing.T) {
	var turns turns
	if !turns.try() || turns.try() {
		t.Fatal("the turn was not taken once")
	}
	gone := errors.New("gone")
	got := make(chan error, 2)
	go func() {
		got <- turns.wait(t.Context(), netip.MustParseAddr("192.0.2.1"), func(int) error { return gone })
	}()
	if err := <-got; err != gone {
		t.Errorf("who cannot be told: %v", err)
	}
	var places []int
	told := make(chan struct{}, 10)
	go func() {
		got <- turns.wait(t.Context(), netip.MustParseAddr("192.0.2.2"), func(place int) error {
			places = append(places, place)
			told <- struct{}{}
			return nil
		})
	}()
	<-told
	if others, over := turns.wanted(); !others || over {
		t.Errorf("wanted: %v, over: %v", others, over)
	}
	turns.release()
	if err := <-got; err != nil || !slices.Equal(places, []int{1}) {
		t.Errorf("%v, places %v", err, places)
	}
	if turns.try() {
		t.Error("the turn was taken twice")
	}
	turns.release()
	if !turns.try() {
		t.Error("the turn was not given back")
	}
}

// A client of before there were places is told that the server is busy.
func TestTurnsAndOlderClients(t *testing.T) {
	far := exclusive(t)
	first, err := far.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	started := time.Now()
	if _, err := far.Connect(t.Context()); codeOf(err) != "busy" { // it does not wait: Waiting is nil
		t.Errorf("%v after %v", err, time.Since(started))
	}
	if _, err := net.Dial("tcp", far.Address); err != nil {
		t.Error(err)
	}
}
