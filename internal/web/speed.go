package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/fullpipe-net/fullpipe/internal/ndt7"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// SpeedConfig says how tests from browsers are served.
type SpeedConfig struct {
	Bounds  ndt7.Limits
	Origins []string // whose pages may test here, beside this server's own
	Version string   // of the program
	// Seal fills in what documents carry beside their figures, and Keep stores one; nil: it is
	// linked for a while and not kept.
	Seal func(doc *record.Measure, took time.Duration)
	Keep func(ctx context.Context, doc *record.Measure) error
	// Kept finds a stored one; nil: nothing is stored.
	Kept func(ctx context.Context, id string) (record.Document, error)
	// Done, when not nil, is told of each result.
	Done func(doc *record.Measure)
	// Note is told of what went wrong; nil: nobody is.
	Note func(string)
}

// Speed is the test from a browser: its page, ndt7, small packets beside it, and results.
type Speed struct {
	cfg    SpeedConfig
	ndt7   *ndt7.Server
	runs   runs
	sought limiter // results in the history, by address: strangers may ask, and each opens it
}

// NewSpeed makes one of a configuration. It is served as ndt7.Server says.
func NewSpeed(cfg SpeedConfig) *Speed {
	s := &Speed{cfg: cfg, sought: limiter{every: time.Second, burst: 20}}
	s.ndt7 = ndt7.NewServer(ndt7.Config{Bounds: cfg.Bounds, Origins: cfg.Origins, Done: s.runs.done})
	return s
}

// routes returns the test's routes: operators test, viewers read results. show writes a page, refuse says why not.
func (s *Speed) routes(show showing, refuse refusing) []route {
	return []route{
		{"GET /ndt/v7/download", Operator, s.ndt7.ServeHTTP},
		{"GET /ndt/v7/upload", Operator, s.ndt7.ServeHTTP},
		{"GET /test", Operator, func(w http.ResponseWriter, r *http.Request) {
			many := min(usualMany, s.ndt7.MaxTestsPerAddress())
			seconds := 22
			if many < 2 {
				seconds = 12 // one connection each way
			}
			show(w, r, "test", map[string]any{"Seconds": seconds, "Many": many})
		}},
		// A page is not told why a server refuses a WebSocket: it asks here.
		{"GET /test/may", Operator, func(w http.ResponseWriter, r *http.Request) {
			if s.may(w, r, refuse) {
				w.WriteHeader(http.StatusNoContent)
			}
		}},
		{"GET /test/echo", Operator, s.echo},
		{"POST /test/begin", Operator, func(w http.ResponseWriter, r *http.Request) { s.begin(w, r, refuse) }},
		{"POST /test/{run}/result", Operator, func(w http.ResponseWriter, r *http.Request) {
			doc, err := s.result(r)
			var own *asked
			if errors.As(err, &own) {
				refuse(w, r, own.status, own.what, own.remedy)
				return
			}
			answerID(w, doc.ID)
		}},
		{"GET /test/{id}", Viewer, func(w http.ResponseWriter, r *http.Request) { s.show(w, r, show, refuse) }},
	}
}

// begin gives a test its place.
func (s *Speed) begin(w http.ResponseWriter, r *http.Request, refuse refusing) {
	if !s.may(w, r, refuse) {
		return
	}
	id, err := s.runs.begin(hostOf(r), time.Now())
	if err != nil {
		w.Header().Set("Retry-After", "30")
		refuse(w, r, http.StatusServiceUnavailable, err.Error(), "again in half a minute")
		return
	}
	answerID(w, id)
}

// show writes a result's page.
func (s *Speed) show(w http.ResponseWriter, r *http.Request, show showing, refuse refusing) {
	view, err := s.view(r)
	var away *store.Unavailable
	switch {
	case errors.Is(err, errSought):
		tooMany(w, r, refuse)
	case errors.As(err, &away):
		refuse(w, r, http.StatusServiceUnavailable, "results cannot be looked up at the moment", "again later")
	case err != nil:
		refuse(w, r, http.StatusNotFound, "no test of that name is kept", "")
	default:
		show(w, r, "tested", render.Document(view))
	}
}

// usualMany is how many connections the page tests with at once, where it may.
const usualMany = 4

// showing writes a page of a template and its data.
type showing func(w http.ResponseWriter, r *http.Request, name string, data any)

// refusing says why not.
type refusing func(w http.ResponseWriter, r *http.Request, status int, what, remedy string)

// may says whether a client may test now; it has answered where not.
func (s *Speed) may(w http.ResponseWriter, r *http.Request, refuse refusing) bool {
	err := s.ndt7.Check(r.Context())
	var no *ndt7.Refusal
	if !errors.As(err, &no) {
		return true
	}
	w.Header().Set("Retry-After", strconv.Itoa(int(no.After.Seconds())))
	refuse(w, r, no.Status(), no.Why, no.Try())
	return false
}

func answerID(w http.ResponseWriter, id string) {
	line, _ := json.Marshal(map[string]string{"id": id}) // a text always is JSON
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(line) // who went away is not told
}

// Bounds of one run's small packets.
const (
	mostEchoes  = 4000
	echoSize    = 64  // bytes
	echoFrame   = 128 // bytes, with what WebSocket and TLS add
	longestEcho = 2 * time.Minute
)

// echo answers small messages at once, for as long as a run may last.
func (s *Speed) echo(w http.ResponseWriter, r *http.Request) {
	run := r.URL.Query().Get("run")
	if !s.runs.echoes(run) {
		http.Error(w, "no test of that name runs, or it has its echo", http.StatusNotFound)
		return
	}
	ndt7.LimitRead(r.Context(), mostEchoes*echoFrame)
	unanswered := func(context.Context, []byte) bool { return false }
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{OnPingReceived: unanswered})
	if err != nil {
		return // it has answered
	}
	defer ws.CloseNow()
	defer func() { s.runs.leaves(run, time.Now()) }()
	ws.SetReadLimit(echoSize)
	ctx, cancel := context.WithTimeout(r.Context(), longestEcho)
	defer cancel()
	for range mostEchoes {
		kind, message, err := ws.Read(ctx)
		if err != nil || ws.Write(ctx, kind, message) != nil {
			return
		}
	}
}

// view is a result's page.
type testedView struct {
	ID, Headline, Far string
	At                time.Time
	Ways              []testedWay
}

type testedWay struct {
	Name, Sentence, Several string
	Culprit                 text.Culprit
	Bps                     float64
	One                     *record.Direction
}

// RPM is how many round trips of so many seconds go into a minute.
func (testedView) RPM(s *float64) int {
	if s == nil || *s <= 0 {
		return 0
	}
	return int(60/(*s) + 0.5)
}

var errSought = errors.New("too many results were asked for")

// view finds a result that a browser's test made; other documents are not shown here.
func (s *Speed) view(r *http.Request) (*testedView, error) {
	id := r.PathValue("id")
	if !identifier.MatchString(id) {
		return nil, errNoRun
	}
	doc := s.runs.result(id)
	if doc == nil && s.cfg.Kept != nil {
		if !s.sought.take(addressOf(r), time.Now()) {
			return nil, errSought
		}
		kept, err := s.cfg.Kept(r.Context(), id)
		if err != nil {
			return nil, err
		}
		doc, _ = kept.(*record.Measure)
	}
	if doc == nil || !strings.HasPrefix(doc.Peer, record.BrowserScheme) {
		return nil, errNoRun
	}
	v := &testedView{ID: id, Far: strings.TrimPrefix(doc.Peer, record.BrowserScheme), At: doc.StartedAt}
	for i := range doc.Directions {
		one := &doc.Directions[i]
		if n := len(v.Ways); n > 0 && v.Ways[n-1].One.Direction == one.Direction {
			v.Ways[n-1].Several = text.SeveralSentence(v.Ways[n-1].One, one)
			continue
		}
		way := testedWay{Name: "upload", Sentence: text.BrowserSentence(one), Culprit: text.CulpritOf(one), One: one}
		if one.Direction == transfer.Up {
			way.Name = "download"
		}
		if one.GoodputBps != nil {
			way.Bps = *one.GoodputBps
		}
		v.Ways = append(v.Ways, way)
	}
	if len(v.Ways) > 0 {
		v.Headline = v.Ways[0].Sentence
	}
	return v, nil
}
