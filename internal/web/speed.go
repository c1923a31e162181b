package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/coder/websocket"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/ndt7"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// SpeedConfig configures the browser speed test.
type SpeedConfig struct {
	Bounds  ndt7.Limits
	Origins []string // origins whose pages may test here, in addition to this server's
	Version string   // of the program
	// Ours reports whether a browser's Host names this server, as Config.Ours; nil: any does.
	Ours func(*http.Request) bool
	// Seal fills in the envelope of a document. Keep stores a document; nil: results are available for a while only.
	Seal func(doc *record.Measure, took time.Duration)
	Keep func(ctx context.Context, doc *record.Measure) error
	// Kept returns a stored document; nil: nothing is stored.
	Kept func(ctx context.Context, id string) (record.Document, error)
	// Done is called with each result; nil: no call.
	Done func(doc *record.Measure)
	// Note is called with each error; nil: errors are dropped.
	Note func(string)
}

// Speed serves the browser speed test: its page, ndt7, the echo for RTT probes, and results.
type Speed struct {
	cfg      SpeedConfig
	ndt7     *ndt7.Server
	runs     runs
	searches admission.Limiter // in the history, by address: they need no authentication, and each opens it
}

// NewSpeed returns a Speed. Its HTTP server has to be set up as ndt7.Server requires.
func NewSpeed(cfg SpeedConfig) *Speed {
	s := &Speed{cfg: cfg, searches: admission.Limiter{Every: time.Second, Burst: 20}}
	s.ndt7 = ndt7.NewServer(ndt7.Config{Bounds: cfg.Bounds, Origins: cfg.Origins, Done: s.runs.done})
	return s
}

// routes returns the test's routes: operators test, viewers read results. show writes a page, refuse an error.
func (s *Speed) routes(show showing, refuse refusing) []route {
	return []route{
		{"GET /ndt/v7/download", Operator, s.ndt7.ServeHTTP},
		{"GET /ndt/v7/upload", Operator, s.ndt7.ServeHTTP},
		{"GET /test", Operator, func(w http.ResponseWriter, r *http.Request) {
			many := min(defaultConnections, s.ndt7.MaxTestsPerAddress())
			seconds := 22
			if many < 2 {
				seconds = 12 // one connection each way
			}
			show(w, r, "test", func(v view) templ.Component { return testPage(v, seconds, many) })
		}},
		// Browsers hide the reason of a refused WebSocket from the page, so the page requests it here.
		{"GET /test/may", Operator, func(w http.ResponseWriter, r *http.Request) {
			if s.may(w, r, refuse) {
				w.WriteHeader(http.StatusNoContent)
			}
		}},
		{"GET /test/echo", Operator, s.echo},
		{"POST /test/begin", Operator, func(w http.ResponseWriter, r *http.Request) { s.begin(w, r, refuse) }},
		{"POST /test/{run}/result", Operator, func(w http.ResponseWriter, r *http.Request) {
			doc, err := s.result(r)
			var own *requestError
			if errors.As(err, &own) {
				refuse(w, r, own.status, own.message, own.remedy)
				return
			}
			answerID(w, doc.ID)
		}},
		{"GET /test/{id}", Viewer, func(w http.ResponseWriter, r *http.Request) { s.show(w, r, show, refuse) }},
	}
}

// begin admits a test and sends its ID.
func (s *Speed) begin(w http.ResponseWriter, r *http.Request, refuse refusing) {
	if !s.may(w, r, refuse) {
		return
	}
	id, err := s.runs.begin(hostOf(r), time.Now())
	if err != nil {
		w.Header().Set("Retry-After", "30")
		refuse(w, r, http.StatusServiceUnavailable, err.Error(), "again in 30 s")
		return
	}
	answerID(w, id)
}

// show writes a result's page.
func (s *Speed) show(w http.ResponseWriter, r *http.Request, show showing, refuse refusing) {
	result, err := s.view(r)
	var away *store.Unavailable
	switch {
	case errors.Is(err, errTooManySearches):
		tooMany(w, r, refuse)
	case errors.As(err, &away):
		refuse(w, r, http.StatusServiceUnavailable, "results cannot be looked up at the moment", "again later")
	case err != nil:
		refuse(w, r, http.StatusNotFound, "no result with this ID is stored", "")
	default:
		result = render.Document(result)
		show(w, r, "tested", func(v view) templ.Component { return testedPage(v, result) })
	}
}

// defaultConnections is the number of connections of the page's test with several connections, within ndt7's limit.
const defaultConnections = 4

// showing is a function that writes a page.
type showing func(w http.ResponseWriter, r *http.Request, name string, one pageFor)

// refusing is a function that sends an error and its remedy.
type refusing func(w http.ResponseWriter, r *http.Request, status int, message, remedy string)

// may reports whether a client may test now. If not, it has sent the refusal.
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
	line, _ := json.Marshal(map[string]string{"id": id}) // strings always marshal
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(line) // an error means that the client has disconnected
}

// Limits of the echo of one test.
const (
	maxEchoes   = 4000
	echoSize    = 64  // bytes
	echoFrame   = 128 // bytes, with the overhead of WebSocket and TLS
	maxEchoTime = 2 * time.Minute
)

// echo sends each small message back at once, until the test's time limit.
func (s *Speed) echo(w http.ResponseWriter, r *http.Request) {
	run := r.URL.Query().Get("run")
	if !s.runs.beginEcho(run) {
		http.Error(w, "no test with this ID runs, or its echo connection exists already", http.StatusNotFound)
		return
	}
	ndt7.LimitRead(r.Context(), maxEchoes*echoFrame)
	unanswered := func(context.Context, []byte) bool { return false }
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{OnPingReceived: unanswered})
	if err != nil {
		return // Accept has sent the error
	}
	defer ws.CloseNow()
	defer func() { s.runs.endEcho(run, time.Now()) }()
	ws.SetReadLimit(echoSize)
	ctx, cancel := context.WithTimeout(r.Context(), maxEchoTime)
	defer cancel()
	for range maxEchoes {
		kind, message, err := ws.Read(ctx)
		if err != nil || ws.Write(ctx, kind, message) != nil {
			return
		}
	}
}

// testedView is the data of a result's page.
type testedView struct {
	ID, Far string
	At      time.Time
	Ways    []testedWay
}

type testedWay struct {
	Name, Sentence, Several string
	Culprit                 text.Culprit
	Bps                     float64
	// Phases are one connection, then several at once; One is the first of them.
	Phases []*record.Direction
	One    *record.Direction
}

// Latency returns the latency under the most load: of the last phase that has it.
func (w testedWay) Latency() *record.Latency {
	for _, d := range slices.Backward(w.Phases) {
		if d.Latency != nil && d.Latency.LoadedS != nil {
			return d.Latency
		}
	}
	return w.One.Latency
}

// Grade returns the worst grade of the ways; "" if none has one.
func (v *testedView) Grade() (worst string) {
	for _, w := range v.Ways {
		worst = max(worst, w.Latency().Grade())
	}
	return worst
}

var errTooManySearches = errors.New("too many searches for results")

// view returns the page's data of a browser test's result. Other documents are reported as not found.
func (s *Speed) view(r *http.Request) (*testedView, error) {
	id := r.PathValue("id")
	if !identifier.MatchString(id) {
		return nil, errNoRun
	}
	doc := s.runs.result(id)
	if doc == nil && s.cfg.Kept != nil {
		if !s.searches.Take(addressOf(r), time.Now()) {
			return nil, errTooManySearches
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
			v.Ways[n-1].Phases = append(v.Ways[n-1].Phases, one)
			continue
		}
		way := testedWay{Name: "upload", Sentence: text.BrowserSentence(one), Culprit: text.CulpritOf(one), One: one,
			Phases: []*record.Direction{one}}
		if one.Direction == transfer.Up {
			way.Name = "download"
		}
		if one.GoodputBps != nil {
			way.Bps = *one.GoodputBps
		}
		v.Ways = append(v.Ways, way)
	}
	return v, nil
}
