package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/httpserver"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/ndt7"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

// webFlags say where browsers are tested with, and what they may take.
type webFlags struct {
	listenFlags
	origins   []string
	tests     int
	bytes     units.Size
	noHistory bool
}

func (f *webFlags) add(fl *pflag.FlagSet) {
	f.tests = 16
	f.bytes = 100 << 30
	fl.StringVar(&f.address, "web", "", "also serve a speed test for browsers, and ndt7, at this `ADDR:PORT`")
	fl.StringVar(&f.cert, "web-cert", "", "over TLS: the certificate, as a PEM `FILE`")
	fl.StringVar(&f.listenFlags.key, "web-key", "", "over TLS: the certificate's private key, as a PEM `FILE`")
	fl.StringVar(&f.token, "web-token-file", "", "only who brings the token in this `FILE` may test "+
		"(/test?access_token=TOKEN)")
	fl.StringSliceVar(&f.origins, "web-origin", nil, "`HOST` whose pages may test here too, as in speed.example.net")
	fl.IntVar(&f.tests, "web-tests", f.tests, "connections of tests at a time; one host may have half of them")
	fl.Var(&f.bytes, "web-bytes", "what one host (an IPv4 address, an IPv6 /64) may move in a day")
	fl.BoolVar(&f.noHistory, "no-history", false, "with --web: do not keep browsers' results in the history")
}

func (f *webFlags) check() error {
	switch {
	case f.address == "":
		return nil
	case f.tests < 2:
		return &usageError{"--web-tests", "a test takes several connections", "8 or more"}
	case f.bytes < 1:
		return &usageError{"--web-bytes", "no test could move anything", "a size, as in 10GB"}
	case (f.cert == "") != (f.listenFlags.key == ""):
		return &usageError{"--web-cert", "a certificate and its key are needed", "both --web-cert and --web-key"}
	}
	if _, _, err := net.SplitHostPort(f.address); err != nil {
		return &usageError{"--web", "is not ADDR:PORT", "--web :8080"}
	}
	return nil
}

// serve answers browsers until the context ends; wait for what it answers.
func (f *webFlags) serve(ctx context.Context, cmd *cobra.Command, log *serveLog) (at net.Addr, wait func(), err error) {
	f.name = "--web"
	l, token, err := f.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	cfg := speedConfig(cmd, f.tests, int64(f.bytes))
	cfg.Origins = f.origins
	if !log.quiet {
		cfg.Done = func(doc *record.Measure) {
			at := now()
			log.events.Print(serverlog.Kind{Event: "web-test"}, func() string { return webResult(doc, at, wantsJSON(cmd)) })
		}
	}
	if f.noHistory {
		cfg.Keep = nil
		cfg.Kept = nil
	}
	server := servePages(ctx, cmd, l, f.tls, web.NewPublic(web.NewSpeed(cfg), token))
	return l.Addr(), server.Close, nil
}

// servePages serves pages of which some carry out tests.
func servePages(ctx context.Context, cmd *cobra.Command, l *net.TCPListener, secure *tls.Config,
	pages http.Handler) *httpserver.Server {
	return httpserver.Start(l, httpserver.Config{Handler: pages, ErrorLog: logOf(cmd).ErrorLog(), TLS: secure,
		BaseContext: ctx, Wrap: ndt7.Accepted, ConnContext: ndt7.WithConn})
}

// speedConfig is a browser's test whose results are kept in this user's history, but for those
// that a lab measured.
func speedConfig(cmd *cobra.Command, tests int, bytes int64) web.SpeedConfig {
	cfg := web.SpeedConfig{Bounds: ndt7.Bounds{Tests: tests, OfOne: max(tests/2, 1), BytesADay: bytes}, Version: version(),
		Note: func(line string) { note(cmd, "%s", line) },
		Seal: func(doc *record.Measure, took time.Duration) { sealBrowsers(cmd, doc, took) }}
	if _, in, _ := lab.Around(); in {
		return cfg
	}
	cfg.Keep = func(ctx context.Context, doc *record.Measure) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		encoded, err := record.Encode(doc)
		if err != nil {
			return err
		}
		if uid := behindSudo(); uid != "" {
			return keepAs(ctx, cmd, uid, encoded, nil)
		}
		s, err := openHistory(ctx, cmd)
		if err != nil {
			return err
		}
		defer s.Close()
		switch err := s.Keep(ctx, encoded, nil); {
		case errors.Is(err, store.ErrClientQuota): // the page has its result all the same
			return nil
		case err != nil && !isWaiting(err):
			return err
		}
		return trim(ctx, cmd, s)
	}
	cfg.Kept = func(ctx context.Context, id string) (record.Document, error) {
		s, err := openHistory(ctx, cmd)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		doc, samples, err := s.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		return record.Decode(doc, samples)
	}
	return cfg
}

// sealBrowsers fills in what documents carry beside their figures: the series is the browser's
// address.
func sealBrowsers(cmd *cobra.Command, doc *record.Measure, took time.Duration) {
	var random [10]byte
	rand.Read(random[:])
	seconds := took.Seconds()
	doc.Envelope = &record.Envelope{ID: record.NewID(doc.StartedAt, random), Origin: record.Manual,
		Outcome: record.OutcomeOf(doc), EndedAt: record.NsTime(doc.StartedAt.Add(took).UnixNano()), TookS: &seconds,
		ClockSynchronised: host.ClockSynchronised(), InForce: host.SettingsInForce(), Commit: thisBuild().Commit}
	if dir, err := store.Dir(); err == nil {
		doc.HostID, _ = store.ReadHostID(dir) // where there is none yet, nothing was kept
	}
	doc.PathKey = record.Path{HostID: doc.HostID, Far: doc.Peer, Kind: "measure browser", Protocol: "tcp"}.Key()
}

// webEvent is a line that `serve --json` prints of --web.
type webEvent struct {
	At         *time.Time     `json:"at,omitempty"`
	Event      string         `json:"event"` // "web": it is served; "web-test": a browser's result
	Web        string         `json:"web,omitempty"`
	Client     string         `json:"client,omitempty"`
	Page       string         `json:"page,omitempty"` // of the result
	Directions []webDirection `json:"directions,omitempty"`
}

// webDirection is one direction of a browser's result; up is what it downloaded.
type webDirection struct {
	Direction  string         `json:"direction"`
	Streams    int            `json:"streams"`
	GoodputBps *float64       `json:"goodput_bps,omitempty"`
	DurationS  *float64       `json:"duration_s,omitempty"`
	Limiter    string         `json:"limiter"`
	Confidence string         `json:"confidence"`
	Candidates []verdict.Name `json:"candidates,omitempty"`
}

func webResult(doc *record.Measure, at time.Time, asJSON bool) string {
	e := webEvent{At: &at, Event: "web-test", Client: doc.Far.Address, Page: "/test/" + doc.ID}
	words := []string{"browser " + e.Client + ":"}
	for i := range doc.Directions {
		d := &doc.Directions[i]
		e.Directions = append(e.Directions, webDirection{string(d.Direction), len(d.Streams), d.GoodputBps, d.DurationS,
			string(d.Limiter), string(d.Confidence), d.Candidates})
		words = append(words, text.BrowserSentence(d))
	}
	if !asJSON {
		return render.Line(strings.Join(append(words, e.Page), " "))
	}
	line, _ := json.Marshal(e) // texts and numbers always are JSON
	return string(line)
}

func webReady(at string, asJSON bool) string {
	if !asJSON {
		return "speed test for browsers: " + at
	}
	line, _ := json.Marshal(webEvent{Event: "web", Web: at}) // texts always are JSON
	return string(line)
}
