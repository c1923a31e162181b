package probe

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// silent are the two ends of a pipe. The far one never sends.
func silent(t *testing.T) (near, far net.Conn) {
	near, far = net.Pipe()
	t.Cleanup(func() {
		near.Close()
		far.Close()
	})
	return near, far
}

// TestClient_LeavesSilentServers stops a server at each step. The client waits for DefaultTimeouts.
func TestClient_LeavesSilentServers(t *testing.T) {
	cert := must.Get(NewCertificate())(t)
	times, key := DefaultTimeouts(), NewKey()
	spec := transfer.Spec{Direction: transfer.Up, Bytes: 1}
	// sendReply replies to a client's Marker. A pipe has no buffer, and the client writes before it reads.
	sendReply := func(conn net.Conn) {
		io.ReadFull(conn, make([]byte, PrefaceSize))
		go conn.Write([]byte{AnswerFullpipe})
		synctest.Wait() // before TLS writes
	}
	// proves also proves the key.
	proves := func(conn net.Conn) net.Conn {
		sendReply(conn)
		secured, err := SecureServer(context.Background(), conn, cert, key)
		if err != nil {
			t.Error(err)
		}
		return secured
	}
	saysHello := func(conn net.Conn) {
		secured := proves(conn)
		writeMessage(secured, kindHello, Hello{Version: Version, Limits: DefaultLimits()})
		io.Copy(io.Discard, secured)
	}
	offers := func(c *control) error {
		_, err := (&run{ctl: c, spec: spec, result: &transfer.Result{}}).offer(context.Background())
		return err
	}
	// concludes ends the transfer on our side: with an error, or by an interruption after it.
	concludes := func(spec transfer.Spec, nearErr error, interrupted bool) func(*control) error {
		return func(c *control) error {
			ctx, interrupt := context.WithCancel(context.Background())
			defer interrupt()
			if interrupted {
				time.AfterFunc(time.Second, interrupt)
			}
			far := make(chan farOutcome, 1)
			go func() {
				_, err := c.conn.Read(make([]byte, 1))
				far <- farOutcome{err: err}
			}()
			return (&run{ctl: c, spec: spec, result: &transfer.Result{}}).awaitResult(ctx, nearErr, far, false)
		}
	}
	timed := transfer.Spec{Direction: transfer.Up, Time: time.Second}
	for name, tt := range map[string]struct {
		server func(net.Conn)
		client func(*control) error // after connecting
		took   time.Duration
		want   string
	}{
		"on the marker": {func(conn net.Conn) { io.Copy(io.Discard, conn) }, nil, times.Answer, "no answer within 10s"},
		"within TLS": {func(conn net.Conn) { sendReply(conn); io.Copy(io.Discard, conn) }, nil, times.Answer,
			"no answer within 10s"},
		"instead of hello": {func(conn net.Conn) { io.Copy(io.Discard, proves(conn)) }, nil, times.Answer,
			"no answer within 10s"},
		"on an offer": {saysHello, offers, times.Answer, "no answer within 10s"},
		"during a transfer": {saysHello, func(c *control) error {
			return c.readUntilResult(spec, func(transfer.Interval) {}, nil).err
		},
			times.Stall, "no answer within 20s"},
		"after a transfer": {saysHello, concludes(spec, nil, false), times.Result, "no result from the far end within 20s"},
		"after a transfer of a time": {saysHello, concludes(timed, nil, false), times.Stop + times.Result,
			"no result from the far end within 22s"},
		"after a failure": {saysHello, concludes(spec, io.ErrShortWrite, false), times.Stop, io.ErrShortWrite.Error()},
		"after an interruption": {saysHello, concludes(spec, nil, true), time.Second + times.Stop,
			"no result from the far end within 3s"},
		"after an interruption of a transfer of a time": {saysHello, concludes(timed, nil, true), time.Second + times.Stop,
			"no result from the far end within 3s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := silent(t)
				go tt.server(far)
				began := time.Now()
				c, err := handshake(context.Background(), Far{Key: key, Timeouts: times}, near)
				if err == nil {
					defer near.Close()
					err = tt.client(c)
				}
				if err != nil {
					err = Simplify(err, times.Answer)
				}
				if took := time.Since(began); took != tt.took || err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v after %v; want %q after %v", err, took, tt.want, tt.took)
				}
			})
		})
	}
}
