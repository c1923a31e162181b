package server

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// A turn ends for who keeps it while others wait, and for nobody else: after longestTurn, on
// a clock that moves by itself. Who waits is told its place every tellEvery meanwhile.
func TestTurnsEndForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns turns
		if !turns.try() {
			t.Fatal("the turn was not free")
		}
		time.Sleep(2 * longestTurn)
		if others, over := turns.wanted(); others || over {
			t.Errorf("nobody waits: others %v, over %v", others, over)
		}
		turns.release()
		if !turns.try() { // whose turn begins now
			t.Fatal("the turn was not given back")
		}
		var told atomic.Int64
		got := make(chan error, 1)
		go func() {
			got <- turns.wait(t.Context(), netip.MustParseAddr("192.0.2.1"), func(int) error { told.Add(1); return nil })
		}()
		synctest.Wait()
		if others, over := turns.wanted(); !others || over || told.Load() != 1 {
			t.Errorf("at once: others %v, over %v, told %d times", others, over, told.Load())
		}
		time.Sleep(longestTurn)
		synctest.Wait()
		if _, over := turns.wanted(); over || told.Load() != 1+int64(longestTurn/tellEvery) {
			t.Errorf("after %v: over %v, told %d times", longestTurn, over, told.Load())
		}
		time.Sleep(time.Nanosecond)
		if _, over := turns.wanted(); !over {
			t.Error("the turn does not end")
		}
		turns.release()
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		if others, over := turns.wanted(); others || over { // the next one's turn is new
			t.Errorf("the next one: others %v, over %v", others, over)
		}
	})
}

// Who gives up its place, by its context, lets those behind it move up, and one to whom the
// turn came in the same moment passes it on.
func TestTurnsOfWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns turns
		turns.try()
		ctx, giveUp := context.WithTimeout(t.Context(), time.Minute)
		defer giveUp()
		first, second := make(chan error, 1), make(chan error, 1)
		var places []int
		go func() {
			first <- turns.wait(ctx, netip.MustParseAddr("192.0.2.1"), func(int) error { return nil })
		}()
		synctest.Wait()
		go func() {
			second <- turns.wait(t.Context(), netip.MustParseAddr("192.0.2.2"), func(place int) error {
				if n := len(places); n == 0 || places[n-1] != place {
					places = append(places, place)
				}
				return nil
			})
		}()
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who gave up: %v", err)
		}
		synctest.Wait()
		turns.release()
		if err := <-second; err != nil || !slices.Equal(places, []int{2, 1}) {
			t.Errorf("%v, places %v", err, places)
		}
		turns.release()
		if !turns.try() {
			t.Error("the turn was lost")
		}
	})
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
