package server

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// exclusive runs a server for one client at a time.
func exclusive(t *testing.T) probe.Far {
	t.Helper()
	c := Config{Address: "127.0.0.1:0", Key: probe.NewKey(), Exclusive: true}
	s := must.Get(New(t.Context(), c))(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return probe.Far{Address: s.Addr().String(), Key: c.Key}
}

// waits connects a client and returns its places. The channel closes when it has the turn or has left.
func waits(ctx context.Context, far probe.Far) (places chan int, done chan error) {
	places, done = make(chan int, 100), make(chan error, 1)
	far.OnQueued = func(place int) { places <- place }
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

// Clients get the turn in order of arrival. A client that vanishes leaves the queue, and one too many of a host is
// refused.
func TestServe_TurnsInOrder(t *testing.T) {
	far := exclusive(t)
	first := must.Get(far.Connect(t.Context()))(t)
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
	crowd.OnQueued = func(place int) { t.Errorf("one too many of a host waits at %d", place) }
	if _, err := crowd.Connect(t.Context()); err == nil || codeOf(err) != "busy" {
		t.Errorf("one too many of a host: %v", err)
	}
	vanish()
	if err := <-thirdDone; !errors.Is(err, context.Canceled) {
		t.Errorf("a vanished client: %v", err)
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

// TestAwait_ReportsPlacesAndEndsLeases uses a virtual clock: a waiting client gets its place each placeInterval,
// and the turn after the holder's lease.
func TestAwait_ReportsPlacesAndEndsLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{}
		lease := 10*placeInterval + time.Second
		holder := &admission.Claim{Rank: admission.KeyHolder, Lease: time.Now().Add(lease)}
		holder.End = func() { go s.turn.Release(holder, time.Now()) }
		if !s.turn.Take(holder, time.Now()) {
			t.Fatal("the turn was not free")
		}
		began := time.Now()
		var reported []time.Duration
		turn := s.claim(netip.MustParseAddr("192.0.2.1"), func() { t.Error("the new holder was ended") })
		must.Do(t, turn.Await(t.Context(), func(int) error {
			reported = append(reported, time.Since(began))
			return nil
		}))
		if took := time.Since(began); took != lease || len(reported) != 11 || reported[10] != 10*placeInterval {
			t.Errorf("the turn came after %v, the place was reported at %v", took, reported)
		}
		if contended := turn.ContendedTime(); contended != 0 {
			t.Errorf("nobody waits: contended for %v", contended)
		}
		turn.Release()
		if !s.turn.Take(holder, time.Now()) {
			t.Error("the turn was not released")
		}
	})
}

// TestAwait_LeavesTheQueue checks clients that leave by context or by a failed report. Those behind them move up.
func TestAwait_LeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{}
		holder := s.claim(netip.MustParseAddr("192.0.2.9"), func() {})
		holder.Await(t.Context(), nil)
		holder.Extend(time.Hour)
		ctx, giveUp := context.WithTimeout(t.Context(), time.Minute)
		defer giveUp()
		await := func(ctx context.Context, from string, report func(int) error) chan error {
			got := make(chan error, 1)
			go func() { got <- s.claim(netip.MustParseAddr(from), func() {}).Await(ctx, report) }()
			synctest.Wait()
			return got
		}
		gone := errors.New("gone")
		first := await(ctx, "192.0.2.1", func(int) error { return nil })
		untold := await(t.Context(), "192.0.2.2", func(place int) error { return gone })
		var places []int
		last := await(t.Context(), "192.0.2.3", func(place int) error {
			if n := len(places); n == 0 || places[n-1] != place {
				places = append(places, place)
			}
			return nil
		})
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a client that left: %v", err)
		}
		if err := <-untold; err != gone {
			t.Errorf("an unreachable client: %v", err)
		}
		synctest.Wait()
		holder.Release()
		if err := <-last; err != nil || !slices.Equal(places, []int{2, 1}) {
			t.Errorf("%v, places %v", err, places)
		}
	})
}

// TestServe_SlowUnauthenticatedClientLosesTurn runs an hour's test at 1 kbit/s on an exclusive server. A key
// holder gets the turn after its wait.
func TestServe_SlowUnauthenticatedClientLosesTurn(t *testing.T) {
	clients := &iperf3.Server{}
	c := Config{Address: "127.0.0.1:0", Key: probe.NewKey(), Exclusive: true, AllowUnauthenticated: true,
		Iperf3: func(ctx context.Context, conn *net.TCPConn, preface probe.Preface, order int64, keyed bool) {
			clients.Handle(ctx, conn, iperf3.Cookie(preface), order, keyed)
		}}
	s := must.Get(New(t.Context(), c))(t)
	s.turn.Handover = 300 * time.Millisecond
	clients.Turn = s.TryTurn
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	slow := iperf3.NewPeer(s.Addr().String())
	defer slow.Close()
	begun := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		_, err := slow.RunCommand(t.Context(), iperf3.Command{
			Params: iperf3.Params{Time: 3600, Streams: 1, Len: 125, Bandwidth: 1000},
			OnOpen: func(iperf3.TestResult) { close(begun) }})
		ended <- err
	}()
	<-begun
	waiting, giveUp := context.WithTimeout(t.Context(), 20*time.Second)
	defer giveUp()
	places, key := waits(waiting, probe.Far{Address: s.Addr().String(), Key: c.Key})
	started := time.Now()
	if place := <-places; place != 1 {
		t.Errorf("the client with the key waits at %d", place)
	}
	if err := <-key; err != nil || time.Since(started) < s.turn.Handover/2 {
		t.Errorf("the client with the key: %v after %v", err, time.Since(started))
	}
	if err := <-ended; !errors.Is(err, iperf3.ErrBusy) {
		t.Errorf("the unauthenticated client: %v", err)
	}
}

// Clients without support for places get the busy answer.
func TestServe_RefusesOldClientsWhenBusy(t *testing.T) {
	far := exclusive(t)
	first := must.Get(far.Connect(t.Context()))(t)
	defer first.Close()
	started := time.Now()
	if _, err := far.Connect(t.Context()); codeOf(err) != "busy" { // does not wait: OnQueued is nil
		t.Errorf("%v after %v", err, time.Since(started))
	}
	if _, err := net.Dial("tcp", far.Address); err != nil {
		t.Error(err)
	}
}
