package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// served admits a client to a session. It returns the client's connection and the session's error. It runs in a
// synctest bubble.
func served(t *testing.T, s *Session) (secured *tls.Conn, ended chan error) {
	t.Helper()
	return servedTo(t, s, s.Key)
}

// servedTo is served with another key.
func servedTo(t *testing.T, s *Session, key Key) (secured *tls.Conn, ended chan error) {
	t.Helper()
	near, far := silent(t)
	ended = make(chan error, 1)
	go func() {
		secured, err := s.Admit(t.Context(), far)
		if err == nil {
			err = s.Serve(t.Context(), secured)
		}
		ended <- err
	}()
	if err := readMarkerReply(near); err != nil { // a pipe has no buffer: reply before the handshake
		t.Fatal(err)
	}
	secured = must.Get(secureClient(t.Context(), near, key))(t)
	return secured, ended
}

// noStreams is a server that has no data connections but grants iperf3 tests.
type noStreams struct{ Host }

func (noStreams) Expect(context.Context, Expected) (<-chan *net.TCPConn, int, func(), error) {
	return nil, 0, nil, errors.New("no room")
}

func (noStreams) Grant(time.Time) (Preface, func(), error) { return NewToken(), func() {}, nil }

// If others wait, a turn lasts as long as the requested test, or idleTurnTimeout for an idle client.
func TestTurn_ExtendedByRequestedTest(t *testing.T) {
	cert := must.Get(NewCertificate())(t)
	synctest.Test(t, func(t *testing.T) {
		var extended []time.Duration
		released := 0
		s := &Session{Certificate: cert, Key: NewKey(), Host: noStreams{}, Hello: Hello{Limits: DefaultLimits()}, Turn: &Turn{
			Await:         func(context.Context, func(int) error) error { return nil },
			Release:       func() { released++ },
			Extend:        func(d time.Duration) { extended = append(extended, d) },
			ContendedTime: func() time.Duration { return time.Minute }}}
		secured, ended := served(t, s)
		if m, err := readMessage(secured, maxAnswer); err != nil || m.kind != kindHello {
			t.Fatalf("%q, %v", m.kind, err)
		}
		for _, asked := range []struct {
			kind kind
			body any
			want []time.Duration
		}{
			{kindEcho, echo{Number: 1}, []time.Duration{idleTurnTimeout, idleTurnTimeout}}, // the first one is hello's
			{kindOffer, offer{Spec: transfer.Spec{Direction: transfer.Up, Time: time.Minute}},
				[]time.Duration{admission.Lease(time.Minute), idleTurnTimeout}},
			{kindOffer, offer{Spec: transfer.Spec{Direction: transfer.Up, Bytes: 1000}},
				[]time.Duration{admission.Lease(0), idleTurnTimeout}},
			{kindGrant, struct{}{}, []time.Duration{idleTurnTimeout, DefaultLimits().Time}},
		} {
			go writeMessage(secured, asked.kind, asked.body)
			must.Get(readMessage(secured, maxAnswer))(t)
			if synctest.Wait(); !slices.Equal(extended, asked.want) {
				t.Errorf("%q %+v: extended by %v; want %v", asked.kind, asked.body, extended, asked.want)
			}
			extended = nil
		}
		secured.NetConn().Close()
		if <-ended; released != 1 {
			t.Errorf("released %d times", released)
		}
	})
}

func TestTurn_RefusesRequestsAfterItsEnd(t *testing.T) {
	cert := must.Get(NewCertificate())(t)
	synctest.Test(t, func(t *testing.T) {
		contended := admission.MaxTurn
		s := &Session{Certificate: cert, Key: NewKey(), Turn: &Turn{
			Await:         func(context.Context, func(int) error) error { return nil },
			Release:       func() {},
			Extend:        func(time.Duration) {},
			ContendedTime: func() time.Duration { return contended }}}
		secured, ended := served(t, s)
		ask := func() message {
			go writeMessage(secured, kindEcho, echo{Number: 1})
			m := must.Get(readMessage(secured, maxAnswer))(t)
			return m
		}
		if m, err := readMessage(secured, maxAnswer); err != nil || m.kind != kindHello {
			t.Fatalf("%q, %v", m.kind, err)
		}
		if m := ask(); m.kind != kindEcho {
			t.Errorf("with the turn: %q", m.kind)
		}
		contended++
		var reply accept
		if m := ask(); m.decode(kindAccept, &reply) != nil || reply.Error != ErrTurnOver.Error() {
			t.Errorf("after it: %q, %+v", m.kind, reply)
		}
		go io.Copy(io.Discard, secured)
		if err := <-ended; !errors.Is(err, ErrTurnOver) {
			t.Errorf("%v", err)
		}
	})
}
