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

// payload is what messages carry: random, so that nothing on the way makes it smaller.
var payload = sync.OnceValue(func() []byte {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	b := make([]byte, largestSize)
	rand.NewChaCha8(seed).Read(b)
	return b
})

// sizes are those of the messages, by how much was sent.
type sizes struct{ size, sent int }

// next is the next message's.
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

// pause until the next measurement is told.
func pause(mean, least time.Duration) time.Duration {
	return min(max(time.Duration(rand.ExpFloat64()*float64(mean)), least), mostEvery)
}

// ended says that the far end closed the connection, as it may at any time.
func ended(err error) bool { return websocket.CloseStatus(err) != -1 || errors.Is(err, io.EOF) }

// send sends messages until the test's end, and answers when the last one was handed over.
func (t *session) send(ctx context.Context) (last time.Duration, err error) {
	gone := make(chan struct{})
	t.reading.Go(func() {
		defer close(gone)
		t.listen(ctx)
	})
	var messages sizes
	tell := t.conn.clock
	for at := time.Duration(0); at < t.length; at = time.Since(t.conn.clock) {
		select {
		case <-gone:
			return at, errGone
		default:
		}
		if !time.Now().Before(tell) {
			tell = time.Now().Add(pause(meanEvery, leastEvery))
			if err := t.tell(ctx); err != nil {
				return at, err
			}
		}
		n := messages.next()
		if err := t.ws.Write(ctx, websocket.MessageBinary, payload()[:n]); err != nil {
			return time.Since(t.conn.clock), err
		}
		moved := t.moved.Add(int64(n))
		t.share = t.conn.share(moved)
		if t.most > 0 && moved >= t.most {
			break
		}
	}
	last = time.Since(t.conn.clock)
	return last, t.tell(ctx)
}

var errGone = errors.New("the client left before the end")

// listen reads what a client says during a download: measurements, and in the end goodbye. The
// load is not its to send.
func (t *session) listen(ctx context.Context) {
	for texts := 0; ; texts++ {
		kind, message, err := t.ws.Reader(ctx)
		switch {
		case err != nil:
		case kind == websocket.MessageBinary || texts >= mostTexts:
			err = errFoul
		default:
			err = t.hear(message)
		}
		if err != nil {
			t.foul.Store(errors.Is(err, errFoul))
			t.ws.CloseNow()
			return
		}
	}
}

// hear reads one measurement of the client's; one that is none is no reason to end.
func (t *session) hear(message io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(message, mostText+1))
	if err != nil {
		return err
	}
	if len(text) > mostText {
		return fmt.Errorf("%w: a measurement of more than %d bytes", errFoul, mostText)
	}
	m, err := decode(text)
	if err == nil {
		t.Said = m
	}
	return nil
}

// receive takes messages until the test's end, and answers when payload came.
func (t *session) receive(ctx context.Context) (came transfer.Span, err error) {
	t.ws.SetReadLimit(mostMessage)
	telling, stop := context.WithCancel(ctx)
	var told sync.WaitGroup
	told.Go(func() { t.tellAll(telling) })
	defer told.Wait()
	defer stop()
	buffer := make([]byte, 128<<10)
	texts := 0
	for {
		kind, message, err := t.ws.Reader(ctx)
		if err != nil {
			if ended(err) {
				err = nil
			}
			return came, err
		}
		if kind == websocket.MessageText {
			texts++
			if texts > mostTexts {
				return came, fmt.Errorf("%w: it says too much", errFoul)
			}
			if err := t.hear(message); err != nil {
				return came, err
			}
			continue
		}
		over, err := parts(message, buffer, func(n int) bool {
			at := time.Since(t.conn.clock)
			t.conn.loaded(n)
			if n > 0 && at <= t.length {
				if came.First == 0 {
					came.First = at
					came.Opening = int64(n)
				}
				came.Last = at
				t.moved.Add(int64(n))
			}
			return at >= t.length
		})
		if over {
			stop()
			told.Wait()
			return came, t.tell(ctx)
		}
		if err != nil {
			return came, err
		}
	}
}

// parts reads a message and calls each with the length of what came, until that says that it is
// over.
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

// tellAll tells measurements until the context ends.
func (t *session) tellAll(ctx context.Context) {
	for {
		timer := time.NewTimer(pause(uploadEvery, uploadLeast))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if t.tell(context.WithoutCancel(ctx)) != nil { // a context that ends would end the connection
			return
		}
	}
}

// tellTime bounds one measurement's way into the socket.
const tellTime = 5 * time.Second

// tell tells the client how its connection stands.
func (t *session) tell(ctx context.Context) error {
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
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	return t.ws.Write(ctx, websocket.MessageText, text)
}
