package probe

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func TestSession_EndsIdleClients(t *testing.T) {
	cert := must.Get(NewCertificate())(t)
	synctest.Test(t, func(t *testing.T) {
		startedAt := time.Now()
		secured, ended := served(t, &Session{Certificate: cert, Key: NewKey()})
		go io.Copy(io.Discard, secured)
		if err := <-ended; err == nil || err.Error() != "idle for 5m0s" || time.Since(startedAt) != 5*time.Minute {
			t.Errorf("%v after %v", err, time.Since(startedAt))
		}
	})
}

// The offset is within the bound for any delays of network and server. Setting our clock meanwhile changes
// nothing.
func TestClockFrom_OffsetWithinBound(t *testing.T) {
	wrote := time.Now()
	read := wrote.Add(80 * time.Millisecond)
	for _, ahead := range []time.Duration{-time.Hour, 0, 3 * time.Second} {
		for _, after := range []time.Duration{0, 10 * time.Millisecond, 80 * time.Millisecond} {
			c := clockFrom(&Hello{TimeNs: wrote.Add(ahead + after).UnixNano()}, wrote, read)
			if c.MaxError != 40*time.Millisecond || (c.Offset-ahead).Abs() > c.MaxError {
				t.Errorf("%v ahead, read after %v: %+v", ahead, after, c)
			}
		}
	}
}

func TestControl_SkipsLateEchoes(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	c := &control{conn: near, timeouts: DefaultTimeouts()}
	e := &echoProbe{ctl: c}
	go func() {
		readMessage(far, maxAnswer)
		writeMessage(far, kindEcho, echo{Number: 1})
		writeMessage(far, kindAccept, accept{Port: 7})
		writeMessage(far, kindEcho, echo{Number: 2})
	}()
	must.Do(t, e.send())
	if l, _ := e.result(); l.Lost != 1 {
		t.Errorf("%+v", l)
	}
	m, err := c.readNext(t.Context(), time.Minute)
	if err != nil || m.kind != kindAccept {
		t.Fatalf("%q, %v", m.kind, err)
	}
	m, err = c.readNext(t.Context(), time.Minute)
	if err != nil || e.receive(m) == nil {
		t.Errorf("an answer to nothing was taken: %v", err)
	}
}
