package serve

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/listener"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

// webFlags are the address and limits of browser tests.
type webFlags struct {
	listener.ListenFlags
	origins   []string
	tests     int
	bytes     units.Size
	noHistory bool
}

func (f *webFlags) add(fl *pflag.FlagSet) {
	f.tests = 16
	f.bytes = 100 << 30
	fl.StringVar(&f.Address, "web", "", "also serve a speed test for browsers, and ndt7, at this `ADDR:PORT`")
	fl.StringVar(&f.Cert, "web-cert", "", "serve over TLS, with the certificate in this PEM `FILE`")
	fl.StringVar(&f.ListenFlags.Key, "web-key", "", "for TLS: PEM `FILE` with the private key "+
		"of the certificate")
	fl.StringVar(&f.Token, "web-token-file", "", "only clients that send the token in this "+
		"`FILE` may test "+
		"(/test?access_token=TOKEN)")
	fl.StringSliceVar(&f.origins, "web-origin", nil, "`HOST` whose pages may test here too, as in speed.example.net")
	fl.IntVar(&f.tests, "web-tests", f.tests, "maximum number of test connections at a time; "+
		"one host may have half of them")
	fl.Var(&f.bytes, "web-bytes", "maximum bytes per day of one host (an IPv4 address or IPv6 /64)")
	fl.BoolVar(&f.noHistory, "no-history", false, "with --web: do not keep browsers' results in the history")
}

// checkUnused returns an error if a flag of the web server is set, which does not run without --web.
func (f *webFlags) checkUnused(flags *pflag.FlagSet) error {
	for _, name := range []string{"web-cert", "web-key", "web-token-file", "web-origin", "web-tests", "web-bytes"} {
		if flags.Changed(name) {
			return exit.Usage("--"+name, "has no effect without --web", "--web :8443 with it")
		}
	}
	return nil
}

func (f *webFlags) check(flags *pflag.FlagSet) error {
	if f.Address == "" {
		return f.checkUnused(flags)
	}
	if err := cmdflag.Check(
		cmdflag.If(f.tests < 2, "--web-tests", "a test takes several connections", "8 or more"),
		cmdflag.If(f.bytes < 1, "--web-bytes", "no test could transfer data", "a size, as in 10GB"),
		cmdflag.If((f.Cert == "") != (f.ListenFlags.Key == ""), "--web-cert", "a certificate and its key are needed",
			"both --web-cert and --web-key"),
	); err != nil {
		return err
	}
	if _, _, err := net.SplitHostPort(f.Address); err != nil {
		return exit.Usage("--web", "is not ADDR:PORT", "--web :8080")
	}
	return nil
}

// serve serves browsers until the context ends. Call wait to wait for the end.
func (f *webFlags) serve(ctx context.Context, cmd *cobra.Command, log *eventLog) (
	urls []string, wait func(), err error) {
	f.Name = "--web"
	l, token, err := f.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	cfg := listener.SpeedConfig(cmd, f.tests, int64(f.bytes))
	cfg.Origins = f.origins
	cfg.Ours = func(r *http.Request) bool { return listener.IsOwnName(r, f.origins) }
	if !log.quiet {
		cfg.Done = func(doc *record.Measure) {
			at := now()
			log.events.Print(serverlog.Kind{Event: "web-test"}, func() string {
				return webResult(doc, at,
					console.WantsJSON(cmd))
			})
		}
	}
	if f.noHistory {
		cfg.Keep = nil
		cfg.Kept = nil
	}
	server := listener.ServePages(ctx, cmd, l, f.TLS, web.NewPublic(web.NewSpeed(cfg), token))
	return f.URLs(l.Addr(), "/test"), server.Close, nil
}

// webEvent is a line of `serve --json` about --web.
type webEvent struct {
	At         *time.Time     `json:"at,omitempty"`
	Event      string         `json:"event"` // "web": ready; "web-test": a browser's result
	Web        string         `json:"web,omitempty"`
	Addresses  []string       `json:"addresses,omitempty"` // of the page, the most likely first
	Client     string         `json:"client,omitempty"`
	Page       string         `json:"page,omitempty"` // of the result
	Directions []webDirection `json:"directions,omitempty"`
}

// webDirection is one direction of a browser's result. up is the browser's download.
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
	line, _ := json.Marshal(e) // cannot fail: e has only strings and numbers
	return string(line)
}

func webReady(urls []string, asJSON bool) string {
	if !asJSON {
		return "speed test for browsers: " + strings.Join(urls, " or ")
	}
	line, _ := json.Marshal(webEvent{Event: "web", Web: urls[0], Addresses: urls}) // cannot fail: texts
	return string(line)
}
