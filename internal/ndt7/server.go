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

// Config configures a Server. The zero value works.
type Config struct {
	Bounds Limits
	// Origins are the hosts whose pages may test here in addition to this server's own, as patterns of path.Match;
	// "*": all.
	Origins []string
	// Done, if not nil, receives each test that began.
	Done func(*Test)
}

// Server serves ndt7's two paths. Its httpserver.Config needs Accepted as Wrap and WithConn as ConnContext.
type Server struct {
	cfg   Config
	guard *quotas
}

// NewServer returns a Server.
func NewServer(cfg Config) *Server {
	return &Server{cfg: cfg, guard: newQuotas(cfg.Bounds)}
}

// Test is a finished test as this end measured it. In a download this end sends.
type Test struct {
	Download bool
	Query    url.Values // the client's self-description
	Client   netip.AddrPort
	Started  time.Time // when the connection was ready
	// Stream is this end's stream, with samples on a clock that started at Started. Its Bytes are message payload:
	// received, or for downloads acknowledged.
	Stream transfer.Stream
	Said   *Measurement // the client's last measurement; nil: none
	Err    error        // why it ended early; nil: it did not
}

// session is a running test.
type session struct {
	*Test
	server *Server
	place  *admission.Entry
	conn   *Conn
	ws     *websocket.Conn
	length time.Duration
	most   int64 // message bytes that end it; 0: unlimited
	moved  atomic.Int64
	stop   context.CancelCauseFunc
	latest atomic.Pointer[transfer.Sample]
	spent  int64   // counted bytes
	share  float64 // message payload among the written bytes
	// clientReader reads a client's messages during a download. It ends with the connection.
	clientReader sync.WaitGroup
	foul         atomic.Bool // the client violated the protocol
}

// LengthKey is the query parameter for a shorter test, milliseconds.
const LengthKey = "fullpipe_ms"

const (
	minLength = 500 * time.Millisecond
	earlyKey  = "early_exit" // of M-Lab's server: MB after which it ends
)

var (
	errDayUsed  = errors.New("the address has moved what it may in a day")
	errProtocol = errors.New("the client violated the ndt7 protocol")
	errEvicted  = errors.New("it was evicted for another address")
)

// ServeHTTP runs one test.
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
	t.place = &admission.Entry{Host: subscriber(t.conn), Evict: func() { stop(errEvicted) }}
	if err := s.guard.admit(t.place, time.Now()); err != nil {
		refuse(w, err)
		return
	}
	defer s.guard.tests.Release(t.place)
	pings := 0
	options := &websocket.AcceptOptions{Subprotocols: []string{Protocol}, OriginPatterns: s.cfg.Origins,
		InsecureSkipVerify: slices.Contains(s.cfg.Origins, "*"),
		OnPingReceived:     func(context.Context, []byte) bool { pings++; return pings <= maxPings }}
	ws, err := websocket.Accept(w, r, options)
	if err != nil {
		return // it has sent a response
	}
	t.ws = ws
	defer ws.CloseNow()
	t.run(ctx)
	if t.foul.Load() || errors.Is(t.Err, errProtocol) || errors.Is(t.Err, websocket.ErrMessageTooBig) {
		s.guard.bar(t.place.Host, time.Now())
	}
	if s.cfg.Done != nil {
		s.cfg.Done(t.Test)
	}
}

// Check returns *Refusal if a test of a request's client would be refused now.
func (s *Server) Check(ctx context.Context) error {
	conn := connOf(ctx)
	if conn == nil {
		return nil
	}
	return s.guard.check(subscriber(conn), time.Now())
}

// MaxTestsPerAddress returns the limit of concurrent tests of one address.
func (s *Server) MaxTestsPerAddress() int { return s.guard.limits.TestsPerAddress }

// maxPings limits a client's pings in one test. It exceeds the number of measurements.
const maxPings = 200

// maxTexts limits a client's texts in one test; the specification asks for ten per second.
const maxTexts = 2000

// read parses the request.
func (t *session) read(r *http.Request) (err error) {
	protocols := strings.Split(strings.Join(r.Header.Values("Sec-WebSocket-Protocol"), ","), ",")
	if !slices.ContainsFunc(protocols, func(p string) bool { return strings.TrimSpace(p) == Protocol }) {
		return fmt.Errorf("not ndt7: the WebSocket subprotocol %s is missing", Protocol)
	}
	if len(r.URL.RawQuery) > maxQuery {
		return fmt.Errorf("a query of %d bytes, more than %d", len(r.URL.RawQuery), maxQuery)
	}
	t.Query, err = url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fmt.Errorf("the query is malformed: %w", err)
	}
	t.length = longest
	if text := t.Query.Get(LengthKey); text != "" {
		ms, err := strconv.ParseUint(text, 10, 16)
		t.length = time.Duration(ms) * time.Millisecond
		if err != nil || t.length < minLength || t.length > longest {
			return fmt.Errorf("%s: %q is not between %d and %d", LengthKey, text, minLength.Milliseconds(),
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

// run moves data and closes the connection.
func (t *session) run(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, t.length+hardEnd-longest)
	defer cancel()
	// Deadline for clients that stall inside a message or do not answer the close.
	defer context.AfterFunc(ctx, func() { t.conn.Close() })()
	t.Err = t.conn.begin(socket.Options{})
	if t.Err != nil {
		return
	}
	t.conn.limitOverhead(maxOverhead)
	t.Started = t.conn.clock
	shorten := func(*transfer.Sample) {}
	if t.Download {
		shorten = limitUnsent(t.conn)
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
	if cause := context.Cause(ctx); errors.Is(cause, errDayUsed) || errors.Is(cause, errEvicted) {
		t.Err = cause
	}
	if t.Err == nil {
		_ = t.ws.Close(websocket.StatusNormalClosure, "") // data has moved, however the client closed
	}
	t.ws.CloseNow()
	t.clientReader.Wait()
	t.Stream = account.finish()
	t.Stream.First = came.First
	t.Stream.Last = came.Last
	t.Stream.Bytes = t.moved.Load()
	t.Stream.FirstReadBytes = came.FirstReadBytes
	if t.Download {
		acknowledged(&t.Stream, t.share)
	}
}

// spend counts the bytes since the last sample.
func (t *session) spend(bytes int64) {
	if moved := bytes - t.spent; moved > 0 {
		t.spent = bytes
		if !t.server.guard.addBytes(t.place, moved, time.Now()) {
			t.stop(errDayUsed)
		}
	}
}

// acknowledged sets a sender's bytes and times to those acknowledged by the far kernel, scaled to the payload.
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
