package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
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

// A client that has the turn and asks for nothing loses it to others, at the first look after
// idleTurn; where nobody waits it stays as long as any other. Either way it gives it back.
func TestIdleTurnEnds(t *testing.T) {
	cert, err := NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	for others, want := range map[bool]time.Duration{true: 2 * idleTurn, false: 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			released := 0
			s := &Session{Certificate: cert, Key: NewKey(), Turn: &Turn{
				Await:   func(context.Context, func(int) error) error { return nil },
				Release: func() { released++ },
				Wanted:  func() (bool, bool) { return others, false }}}
			begun := time.Now()
			secured, ended := served(t, s)
			go io.Copy(io.Discard, secured)
			err := <-ended
			if took := time.Since(begun); errors.Is(err, errTurnOver) != others || took != want || released != 1 {
				t.Errorf("others wait %v: %v after %v, given back %d times", others, err, took, released)
			}
		})
	}
}

// A client whose turn is over is told so when it asks for another test.
func TestTurnThatIsOver(t *testing.T) {
	cert, err := NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		over := false
		s := &Session{Certificate: cert, Key: NewKey(), Turn: &Turn{
			Await:   func(context.Context, func(int) error) error { return nil },
			Release: func() {},
			Wanted:  func() (bool, bool) { return true, over }}}
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
		over = true
		var told accept
		if m := ask(); m.decode(kindAccept, &told) != nil || told.Error != errTurnOver.Error() {
			t.Errorf("after it: %q, %+v", m.kind, told)
		}
		go io.Copy(io.Discard, secured)
		if err := <-ended; !errors.Is(err, errTurnOver) {
			t.Errorf("%v", err)
		}
	})
}
