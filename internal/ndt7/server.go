package ndt7

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Config says how a Server serves. The zero value works.
type Config struct {
	Bounds Bounds
	// Origins are the hosts whose pages may test here beside this server's own, as patterns of
	// path.Match; "*" is every page.
	Origins []string
	// Done, when not nil, is told of each test that began.
	Done func(*Test)
}

// Server answers ndt7's two paths. The httpserver.Config that it is served with has Accepted as
// Wrap and WithConn as ConnContext.
type Server struct {
	cfg   Config
	guard *guard
}

// NewServer makes a server.
func NewServer(cfg Config) *Server {
	return &Server{cfg: cfg, guard: newGuard(cfg.Bounds)}
}

// Test is a test that was carried out, as this end saw it: of a download it sent.
type Test struct {
	Download bool
	Query    url.Values // what the client said of itself
	Client   netip.AddrPort
	Started  time.Time // when the connection was ready
	// Stream is this end's, with samples on a clock that began at Started. Its Bytes are
	// payload of messages: received, or of a download acknowledged.
	Stream transfer.Stream
	Said   *Measurement // the client's last; nil: nothing
	Err    error        // why it ended early; nil: it did not
}

// session is a test that runs.
type session struct {
	*Test
	server *Server
	place  *admission.Entry
	conn   *Conn
	ws     *websocket.Conn
	length time.Duration
	most   int64 // bytes of messages that end it; 0: no bound
	moved  atomic.Int64
	stop   context.CancelCauseFunc
	latest atomic.Pointer[transfer.Sample]
	spent  int64   // bytes that are booked
	share  float64 // of what was written that is payload of messages
	// reading is what a client says during a download; it ends with the connection.
	reading sync.WaitGroup
	foul    atomic.Bool // the client did not keep to the protocol
}

// LengthKey is the parameter by which a client asks for a shorter test, in milliseconds.
const LengthKey = "fullpipe_ms"

const (
	leastLength = 500 * time.Millisecond
	earlyKey    = "early_exit" // of M-Lab's server: it ends after so many MB
)

var (
	errDayUsed = errors.New("the address has moved what it may in a day")
	errFoul    = errors.New("the client does not keep to ndt7")
	errRoom    = errors.New("it made room for another address")
)

// ServeHTTP carries out one test.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := &session{server: s, Test: &Test{Download: strings.HasSuffix(r.URL.Path, DownloadPath)}, conn: connOf(r.Context())}
	if t.conn == nil {
		http.Error(w, "this connection cannot be measured", http.StatusInternalServerError)
		return
	}
	if err := t.read(r); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	t.Client = t.conn.remote()
	ctx, stop := context.WithCancelCause(r.Context())
	defer stop(nil)
	t.stop = stop
	t.place = &admission.Entry{Host: subscriber(t.conn), Evict: func() { stop(errRoom) }}
	if err := s.guard.admit(t.place, time.Now()); err != nil {
		refuse(w, err)
		return
	}
	defer s.guard.tests.Release(t.place)
	pings := 0
	options := &websocket.AcceptOptions{Subprotocols: []string{Protocol}, OriginPatterns: s.cfg.Origins,
		InsecureSkipVerify: slices.Contains(s.cfg.Origins, "*"),
		OnPingReceived:     func(context.Context, []byte) bool { pings++; return pings <= mostPings }}
	ws, err := websocket.Accept(w, r, options)
	if err != nil {
		return // it has answered
	}
	t.ws = ws
	defer ws.CloseNow()
	t.run(ctx)
	if t.foul.Load() || errors.Is(t.Err, errFoul) || errors.Is(t.Err, websocket.ErrMessageTooBig) {
		s.guard.bar(t.place.Host, time.Now())
	}
	if s.cfg.Done != nil {
		s.cfg.Done(t.Test)
	}
}

// May says whether one more test of the client behind a request's context would begin now; else
// it answers *Refusal.
func (s *Server) May(ctx context.Context) error {
	conn := connOf(ctx)
	if conn == nil {
		return nil
	}
	return s.guard.may(subscriber(conn), time.Now())
}

// MostOfOne is how many tests of one address run at a time.
func (s *Server) MostOfOne() int { return s.guard.bounds.OfOne }

// mostPings of a client are answered in one test: more often than measurements come.
const mostPings = 200

// mostTexts of a client are read in one test; the specification asks for ten a second.
const mostTexts = 2000

// read takes what the request asks for.
func (t *session) read(r *http.Request) (err error) {
	protocols := strings.Split(strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ","), ",")
	if !slices.ContainsFunc(protocols, func(p string) bool { return strings.TrimSpace(p) == Protocol }) {
		return fmt.Errorf("not ndt7: the WebSocket subprotocol %s is missing", Protocol)
	}
	if len(r.URL.RawQuery) > mostQuery {
		return fmt.Errorf("a query of %d bytes, more than %d", len(r.URL.RawQuery), mostQuery)
	}
	if t.Query, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		return fmt.Errorf("the query is malformed: %w", err)
	}
	t.length = longest
	if text := t.Query.Get(LengthKey); text != "" {
		ms, err := strconv.ParseUint(text, 10, 16)
		t.length = time.Duration(ms) * time.Millisecond
		if err != nil || t.length < leastLength || t.length > longest {
			return fmt.Errorf("%s: %q is not between %d and %d", LengthKey, text, leastLength.Milliseconds(),
				longest.Milliseconds())
		}
	}
	if text := t.Query.Get(earlyKey); text != "" && t.Download {
		mb, err := strconv.ParseUint(text, 10, 16)
		if err != nil || mb == 0 {
			return fmt.Errorf("%s: %q is no number of megabytes", earlyKey, text)
		}
		t.most = int64(mb) * 1e6
	}
	return nil
}

func refuse(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	var no *Refusal
	if errors.As(err, &no) {
		w.Header().Set("Retry-After", strconv.Itoa(int(no.After.Seconds())))
		status = no.Status()
	}
	http.Error(w, err.Error(), status)
}

// run moves the load and ends the connection.
func (t *session) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, t.length+hardEnd-longest)
	defer cancel()
	// Who stops in the middle of a message, or never answers the goodbye, is waited for until then.
	defer context.AfterFunc(ctx, func() { t.conn.Close() })()
	t.Err = t.conn.begin(socket.Options{})
	if t.Err != nil {
		return
	}
	t.conn.bound(mostBeside)
	t.Started = t.conn.clock
	shorten := func(*transfer.Sample) {}
	if t.Download {
		shorten = keepShort(t.conn)
	}
	account := follow(t.conn, t.Download, func(s *transfer.Sample) {
		t.latest.Store(s)
		shorten(s)
		t.spend(s.Program)
	})
	var came transfer.Span
	if t.Download {
		came.Last, t.Err = t.send(ctx)
	} else {
		came, t.Err = t.receive(ctx)
	}
	if cause := context.Cause(ctx); errors.Is(cause, errDayUsed) || errors.Is(cause, errRoom) {
		t.Err = cause
	}
	if t.Err == nil {
		_ = t.ws.Close(websocket.StatusNormalClosure, "") // the load has moved, however the client takes leave
	}
	t.ws.CloseNow()
	t.reading.Wait()
	t.Stream = account.finish()
	t.Stream.First = came.First
	t.Stream.Last = came.Last
	t.Stream.Bytes = t.moved.Load()
	t.Stream.Opening = came.Opening
	if t.Download {
		acknowledged(&t.Stream, t.share)
	}
}

// spend books what moved since the last sample.
func (t *session) spend(bytes int64) {
	if moved := bytes - t.spent; moved > 0 {
		t.spent = bytes
		if !t.server.guard.spend(t.place, moved, time.Now()) {
			t.stop(errDayUsed)
		}
	}
}

// acknowledged makes a sender's bytes and times those of what the far kernel acknowledged, of
// which the messages' payload is the share.
func acknowledged(s *transfer.Stream, share float64) {
	if len(s.Samples) == 0 {
		return
	}
	end := transfer.End{Streams: []transfer.Stream{*s}}
	end.TimeByAcknowledgements()
	s.First = end.Streams[0].First
	s.Last = end.Streams[0].Last
	begin := &s.Samples[0]
	last := &s.Samples[len(s.Samples)-1]
	if last.Have&transfer.HaveAcked != 0 {
		s.Bytes = int64(float64(max(last.Acked-begin.Acked, 0)) * share)
	}
}
