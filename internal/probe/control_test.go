package probe

import (
	"context"
	"net"
	"testing"
)

func TestLateEchoesArePassedOver(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	c := &control{conn: near}
	e := &echoes{ctl: c}
	go func() {
		readMessage(far, mostAnswer)
		writeMessage(far, kindEcho, echo{Number: 1})
		writeMessage(far, kindAccept, accept{Port: 7})
		writeMessage(far, kindEcho, echo{Number: 2})
	}()
	if err := e.ask(); err != nil {
		t.Fatal(err)
	}
	if l := e.result(); l.Lost != 1 {
		t.Errorf("%+v", l)
	}
	m, err := c.next(context.Background(), connectTime)
	if err != nil || m.kind != kindAccept {
		t.Fatalf("%q, %v", m.kind, err)
	}
	if m, err = c.next(context.Background(), connectTime); err != nil || e.answered(m) == nil {
		t.Errorf("an answer to nothing was taken: %v", err)
	}
}
