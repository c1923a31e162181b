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
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// served admits a client of a session and answers its connection, and how the session ends.
// It runs in a synctest bubble.
func served(t *testing.T, s *Session) (secured *tls.Conn, ended chan error) {
	t.Helper()
	return servedTo(t, s, s.Key)
}

// servedTo is served for a client that proves another key.
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
	if err := readAnswer(near); err != nil { // a pipe holds nothing: first the answer, then the handshake
		t.Fatal(err)
	}
	secured, err := secureClient(t.Context(), near, key)
	if err != nil {
		t.Fatal(err)
	}
	return secured, ended
}

// noStreams is a server without room for data connections, which grants iperf3 tests.
type noStreams struct{ Host }

func (noStreams) Expect(context.Context, Expected) (<-chan *net.TCPConn, int, func(), error) {
	return nil, 0, nil, errors.New("no room")
}

func (noStreams) Grant(time.Time) (Preface, func(), error) { return NewToken(), func() {}, nil }

// The turn of a client lasts as long as the test that it asked for, and for idleTurn where it asks
// for nothing, if others wait.
func TestTurn_IsExtendedByWhatTheClientAsksFor(t *testing.T) {
	cert, err := NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var extended []time.Duration
		released := 0
		s := &Session{Certificate: cert, Key: NewKey(), Host: noStreams{}, Hello: Hello{Limits: DefaultLimits()}, Turn: &Turn{
			Await:   func(context.Context, func(int) error) error { return nil },
			Release: func() { released++ },
			Extend:  func(d time.Duration) { extended = append(extended, d) },
			Held:    func() time.Duration { return time.Minute }}}
		secured, ended := served(t, s)
		if m, err := readMessage(secured, mostAnswer); err != nil || m.kind != kindHello {
			t.Fatalf("%q, %v", m.kind, err)
		}
		for _, asked := range []struct {
			kind kind
			body any
			want []time.Duration
		}{
			{kindEcho, echo{Number: 1}, []time.Duration{idleTurn, idleTurn}}, // the first one is hello's
			{kindOffer, offer{Spec: transfer.Spec{Direction: transfer.Up, Time: time.Minute}},
				[]time.Duration{admission.Lease(time.Minute), idleTurn}},
			{kindOffer, offer{Spec: transfer.Spec{Direction: transfer.Up, Bytes: 1000}},
				[]time.Duration{admission.Lease(0), idleTurn}},
			{kindGrant, struct{}{}, []time.Duration{idleTurn, DefaultLimits().Time}},
		} {
			go writeMessage(secured, asked.kind, asked.body)
			if _, err := readMessage(secured, mostAnswer); err != nil {
				t.Fatal(err)
			}
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

// A client whose turn is over is told so when it asks for another test.
func TestTurnThatIsOver(t *testing.T) {
	cert, err := NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		held := admission.MaxTurn
		s := &Session{Certificate: cert, Key: NewKey(), Turn: &Turn{
			Await:   func(context.Context, func(int) error) error { return nil },
			Release: func() {},
			Extend:  func(time.Duration) {},
			Held:    func() time.Duration { return held }}}
		secured, ended := served(t, s)
		ask := func() message {
			go writeMessage(secured, kindEcho, echo{Number: 1})
			m, err := readMessage(secured, mostAnswer)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		if m, err := readMessage(secured, mostAnswer); err != nil || m.kind != kindHello {
			t.Fatalf("%q, %v", m.kind, err)
		}
		if m := ask(); m.kind != kindEcho {
			t.Errorf("with the turn: %q", m.kind)
		}
		held++
		var told accept
		if m := ask(); m.decode(kindAccept, &told) != nil || told.Error != ErrTurnOver.Error() {
			t.Errorf("after it: %q, %+v", m.kind, told)
		}
		go io.Copy(io.Discard, secured)
		if err := <-ended; !errors.Is(err, ErrTurnOver) {
			t.Errorf("%v", err)
		}
	})
}
