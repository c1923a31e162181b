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
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// maxFollowers is the maximum number of clients of the live view.
const maxFollowers = 32

// live is one watch shared by all clients of a live view. It starts with the first client and stops after the last,
// so that additional clients cause no additional work.
type live struct {
	watch func(ctx context.Context, show func(document any)) error

	mu        sync.Mutex // guards the fields below
	followers map[chan []byte]bool
	last      []byte // the newest document, as JSON on one line
	failed    error  // why the watch ended
	stop      context.CancelFunc
	number    int // of the watch that runs, or ran last
	closed    bool

	running sync.WaitGroup // watches that have not ended
}

func newLive(watch func(ctx context.Context, show func(document any)) error) *live {
	return &live{watch: watch, followers: map[chan []byte]bool{}}
}

// newWatchLive returns the live view of this host's connections. watch is nil where they cannot be watched.
func newWatchLive(watch func(context.Context, func(*record.Watch)) error) *live {
	if watch == nil {
		return newLive(nil)
	}
	return newLive(func(ctx context.Context, show func(document any)) error {
		return watch(ctx, func(d *record.Watch) { show(liveView{d, wordsOf(d)}) })
	})
}

var errTooManyFollowers = errors.New("too many clients follow the live view")

// follow returns a channel of documents, which has the newest document if there is one. The channel is closed when the
// watch ends.
func (l *live) follow() (documents chan []byte, leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.watch == nil || l.closed:
		return nil, nil, errors.New("connections cannot be watched here")
	case len(l.followers) >= maxFollowers:
		return nil, nil, errTooManyFollowers
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

// begin starts the watch. The caller has locked l.mu.
func (l *live) begin() {
	ctx, stop := context.WithCancel(context.Background())
	l.number++
	this := l.number
	l.stop = stop
	l.last = nil
	l.failed = nil
	l.running.Go(func() {
		err := l.watch(ctx, func(d any) { l.show(ctx, d) })
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.number != this || l.stop == nil { // stopped by leave or close
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

// show sends a document to all followers. It replaces the previous document of a follower that has not received it.
func (l *live) show(ctx context.Context, d any) {
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
		f <- line // never blocks: the buffer has one place and this is the only sender
	}
}

// liveView is a document with the words of its connections' directions, in their order.
type liveView struct {
	*record.Watch
	Words [][]directionWords `json:"words"`
}

// directionWords are a direction's program, limiter and advice in words.
type directionWords struct {
	Owner   string `json:"owner"`
	Limited string `json:"limited"`
	Do      string `json:"do,omitempty"`
}

func wordsOf(d *record.Watch) [][]directionWords {
	all := [][]directionWords{}
	for i := range d.Connections {
		words := []directionWords{}
		for j := range d.Connections[i].Directions {
			one := &d.Connections[i].Directions[j]
			words = append(words, directionWords{text.Owner(&d.Connections[i]), text.LimitedCell(&d.Connections[i], j),
				text.Advice(one)})
		}
		all = append(all, words)
	}
	return all
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

// watchError returns the error that ended the watch, or nil if it was stopped.
func (l *live) watchError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// events starts a response of server-sent events and removes its read deadline.
func events(w http.ResponseWriter) *http.ResponseController {
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // the request has been read; its deadline would end the response
	return out
}

// sendTimeout is the timeout for sending one document to a follower.
const sendTimeout = 20 * time.Second

// mayEvery is how often an idle stream looks whether its reader still may read.
const mayEvery = 10 * time.Second

// stream sends the documents of a live view as server-sent events.
func (s *Server) stream(l *live, w http.ResponseWriter, r *http.Request) {
	documents, leave, err := l.follow()
	if errors.Is(err, errTooManyFollowers) {
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
		_ = out.SetWriteDeadline(time.Now().Add(sendTimeout)) // without support for deadlines there is no timeout
		if event != "" {
			fmt.Fprintf(w, "event: %s\n", event)
		}
		_, err := fmt.Fprintf(w, "data: %s\n\n", bytes.ReplaceAll(line, []byte("\n"), nil))
		return err == nil && out.Flush() == nil
	}
	if !send("hello", []byte("{}")) {
		return
	}
	idle := time.NewTicker(mayEvery)
	defer idle.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-idle.C:
			if !s.stillMay(r) {
				return
			}
		case line, ok := <-documents:
			if !ok {
				if err := l.watchError(); err != nil {
					words, _ := json.Marshal(map[string]string{"message": err.Error()}) // strings always marshal
					send("failed", words)
				}
				return
			}
			if !s.stillMay(r) || !send("", line) {
				return
			}
		}
	}
}
