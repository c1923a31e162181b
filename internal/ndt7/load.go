package ndt7

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// payload is random, so that the path cannot compress it.
var payload = sync.OnceValue(func() []byte {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	b := make([]byte, largestSize)
	rand.NewChaCha8(seed).Read(b)
	return b
})

// sizes are the sizes of messages by the bytes sent.
type sizes struct{ size, sent int }

// next returns the size of the next message.
func (s *sizes) next() int {
	if s.size == 0 {
		s.size = firstSize
	}
	if s.size < largestSize && s.size < s.sent/scaling {
		s.size *= 2
	}
	s.sent += s.size
	return s.size
}

// pause returns the time until the next measurement.
func pause(mean, least time.Duration) time.Duration {
	return min(max(time.Duration(rand.ExpFloat64()*float64(mean)), least), maxEvery)
}

// isClosed reports whether the far end closed the connection, which is allowed at any time.
func isClosed(err error) bool { return websocket.CloseStatus(err) != -1 || errors.Is(err, io.EOF) }

// send sends messages until the test's end and returns when the last one was written.
func (t *session) send(ctx context.Context) (last time.Duration, err error) {
	gone := make(chan struct{})
	t.clientReader.Go(func() {
		defer close(gone)
		t.readMeasurements(ctx)
	})
	var messages sizes
	send := t.conn.clock
	for at := time.Duration(0); at < t.length; at = time.Since(t.conn.clock) {
		select {
		case <-gone:
			return at, errGone
		default:
		}
		if !time.Now().Before(send) {
			send = time.Now().Add(pause(meanEvery, minEvery))
			if err := t.sendMeasurement(ctx); err != nil {
				return at, err
			}
		}
		n := messages.next()
		if err := t.ws.Write(ctx, websocket.MessageBinary, payload()[:n]); err != nil {
			return time.Since(t.conn.clock), err
		}
		moved := t.moved.Add(int64(n))
		t.share = t.conn.payloadShare(moved)
		if t.most > 0 && moved >= t.most {
			break
		}
	}
	last = time.Since(t.conn.clock)
	return last, t.sendMeasurement(ctx)
}

var errGone = errors.New("the client left before the end")

// readMeasurements reads a client's messages during a download: measurements and the final close. Payload is an
// error.
func (t *session) readMeasurements(ctx context.Context) {
	for texts := 0; ; texts++ {
		kind, message, err := t.ws.Reader(ctx)
		switch {
		case err != nil:
		case kind == websocket.MessageBinary || texts >= maxTexts:
			err = errProtocol
		default:
			err = t.readMeasurement(message)
		}
		if err != nil {
			t.foul.Store(errors.Is(err, errProtocol))
			t.ws.CloseNow()
			return
		}
	}
}

// readMeasurement reads a client's measurement. Invalid ones are ignored.
func (t *session) readMeasurement(message io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(message, maxText+1))
	if err != nil {
		return err
	}
	if len(text) > maxText {
		return fmt.Errorf("%w: a measurement of more than %d bytes", errProtocol, maxText)
	}
	m, err := decode(text)
	if err == nil {
		t.Said = m
	}
	return nil
}

// receive reads messages until the test's end and returns when payload arrived.
func (t *session) receive(ctx context.Context) (came transfer.Span, err error) {
	t.ws.SetReadLimit(maxMessage)
	telling, stop := context.WithCancel(ctx)
	var report sync.WaitGroup
	report.Go(func() { t.sendMeasurements(telling) })
	defer report.Wait()
	defer stop()
	buffer := make([]byte, 128<<10)
	texts := 0
	for {
		kind, message, err := t.ws.Reader(ctx)
		if err != nil {
			if isClosed(err) {
				err = nil
			}
			return came, err
		}
		if kind == websocket.MessageText {
			texts++
			if texts > maxTexts {
				return came, fmt.Errorf("%w: it sent too many texts", errProtocol)
			}
			if err := t.readMeasurement(message); err != nil {
				return came, err
			}
			continue
		}
		over, err := parts(message, buffer, func(n int) bool {
			at := time.Since(t.conn.clock)
			t.conn.creditPayload(n)
			if n > 0 && at <= t.length {
				if came.First == 0 {
					came.First = at
					came.FirstReadBytes = int64(n)
				}
				came.Last = at
				t.moved.Add(int64(n))
			}
			return at >= t.length
		})
		if over {
			stop()
			report.Wait()
			return came, t.sendMeasurement(ctx)
		}
		if err != nil {
			return came, err
		}
	}
}

// parts reads a message in parts and calls each with the length of every part. It stops and returns true when each
// returns true.
func parts(message io.Reader, buffer []byte, each func(n int) (over bool)) (over bool, err error) {
	for {
		n, err := message.Read(buffer)
		if each(n) {
			return true, nil
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// sendMeasurements sends measurements until the context ends.
func (t *session) sendMeasurements(ctx context.Context) {
	for {
		timer := time.NewTimer(pause(uploadEvery, uploadLeast))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if t.sendMeasurement(context.WithoutCancel(ctx)) != nil { // a cancelled write would close the connection
			return
		}
	}
}

// measurementTimeout limits the write of one measurement.
const measurementTimeout = 5 * time.Second

// sendMeasurement sends the client the state of its connection.
func (t *session) sendMeasurement(ctx context.Context) error {
	m := Measurement{Origin: "server", Test: "upload",
		AppInfo:        &AppInfo{ElapsedTime: time.Since(t.conn.clock).Microseconds(), NumBytes: t.moved.Load()},
		ConnectionInfo: &ConnectionInfo{Client: t.Client.String(), Server: t.conn.LocalAddr().String()}}
	if t.Download {
		m.Test = "download"
	}
	if s := t.latest.Load(); s != nil {
		m.TCPInfo = newTCPInfo(s, t.conn.mss())
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, measurementTimeout)
	defer cancel()
	return t.ws.Write(ctx, websocket.MessageText, text)
}
