package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// mostFollowers is how many follow the live view at once.
const mostFollowers = 32

// live is the one watch that all who look at the live view share: it begins with the first
// of them and ends with the last, so nobody's looking costs another dump of all sockets.
type live struct {
	watch func(context.Context, func(*record.Watch)) error

	mu        sync.Mutex // guards what follows
	followers map[chan []byte]bool
	last      []byte // the newest document, as JSON on one line
	failed    error  // why the watch ended
	stop      context.CancelFunc
	number    int // of the watch that runs, or ran last
	closed    bool

	running sync.WaitGroup // watches that have not ended
}

func newLive(watch func(context.Context, func(*record.Watch)) error) *live {
	return &live{watch: watch, followers: map[chan []byte]bool{}}
}

var errCrowded = errors.New("too many follow the live view")

// follow answers documents, the newest at once where there is one. The channel is closed
// when the watch ends.
func (l *live) follow() (documents chan []byte, leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.watch == nil || l.closed:
		return nil, nil, errors.New("connections cannot be watched here")
	case len(l.followers) >= mostFollowers:
		return nil, nil, errCrowded
	}
	documents = make(chan []byte, 1)
	l.followers[documents] = true
	if l.stop == nil {
		l.begin()
	} else if l.last != nil {
		documents <- l.last
	}
	return documents, func() { l.leave(documents) }, nil
}

// begin starts the watch. The lock is held.
func (l *live) begin() {
	ctx, stop := context.WithCancel(context.Background())
	l.number++
	this := l.number
	l.stop = stop
	l.last = nil
	l.failed = nil
	l.running.Go(func() {
		err := l.watch(ctx, func(d *record.Watch) { l.show(ctx, d) })
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.number != this || l.stop == nil { // it was stopped
			return
		}
		if ctx.Err() == nil {
			l.failed = err
		}
		l.stop = nil
		stop()
		for f := range l.followers {
			delete(l.followers, f)
			close(f)
		}
	})
}

// show hands a document to all who follow; who has not taken the one before gets this one
// in its place.
func (l *live) show(ctx context.Context, d *record.Watch) {
	line, err := json.Marshal(d)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	l.last = line
	for f := range l.followers {
		select {
		case <-f:
		default:
		}
		f <- line // it has room for one, and only this sends
	}
}

func (l *live) leave(f chan []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.followers, f)
	if len(l.followers) == 0 && l.stop != nil {
		l.stop()
		l.stop = nil
	}
}

func (l *live) close() {
	l.mu.Lock()
	l.closed = true
	stop := l.stop
	l.mu.Unlock()
	if stop != nil {
		stop()
	}
	l.running.Wait()
}

// why the watch ended; nil where it was stopped.
func (l *live) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// events begins an answer of server-sent events, which may last.
func events(w http.ResponseWriter) *http.ResponseController {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // the request has been read: its time would end the answer's
	return out
}

// answerTime is how long a follower may take for one document.
const answerTime = 20 * time.Second

// stream sends what the watch sees as server-sent events, one document each.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	documents, leave, err := s.live.follow()
	if errors.Is(err, errCrowded) {
		s.refuse(w, r, http.StatusServiceUnavailable, err.Error(), "close another window")
		return
	}
	if err != nil {
		s.refuse(w, r, http.StatusNotImplemented, err.Error(), "fullpipe ui on Linux")
		return
	}
	defer leave()
	out := events(w)
	send := func(event string, line []byte) bool {
		_ = out.SetWriteDeadline(time.Now().Add(answerTime)) // where there are none, nobody is cut off
		if event != "" {
			fmt.Fprintf(w, "event: %s\n", event)
		}
		_, err := fmt.Fprintf(w, "data: %s\n\n", bytes.ReplaceAll(line, []byte("\n"), nil))
		return err == nil && out.Flush() == nil
	}
	if !send("hello", []byte("{}")) {
		return
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case line, ok := <-documents:
			if !ok {
				if err := s.live.why(); err != nil {
					words, _ := json.Marshal(map[string]string{"message": err.Error()}) // a text always is JSON
					send("failed", words)
				}
				return
			}
			if !send("", line) {
				return
			}
		}
	}
}
