package recheck

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/hook"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// notifyFlags name a program and a webhook that receive events.
type notifyFlags struct {
	program string
	webhook string
	pause   time.Duration // before a webhook is tried again; 0: webhookPause
	limit   time.Duration // of the program; 0: programTime
}

// Limits of the program and the webhook: neither may delay the tests.
const (
	programTime  = time.Minute
	webhookTime  = 10 * time.Second
	webhookTries = 3
	webhookPause = 2 * time.Second // doubled each time
	webhookReads = 64 << 10        // bytes of an answer
	// notifyAfterInterrupt is the time that notifications may take after an interrupt.
	notifyAfterInterrupt = 700 * time.Millisecond
)

func (f *notifyFlags) register(fl *pflag.FlagSet) {
	fl.StringVar(&f.program, "on-change", "", "run this `program` for each event: no shell, no arguments; the event "+
		"is in FULLPIPE_EVENT, _PEER, _METRIC …, and as JSON on standard input")
	fl.StringVar(&f.webhook, "webhook", "", "send each event as JSON to this `URL` by POST")
}

func (f *notifyFlags) check() error {
	if f.program != "" {
		path, err := exec.LookPath(f.program)
		if err != nil {
			return exit.Usage("--on-change", exit.Plain(err), "a program, without arguments: --on-change /usr/local/bin/alert")
		}
		f.program = path
	}
	if f.webhook == "" {
		return nil
	}
	u, err := url.Parse(f.webhook)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return exit.Usage("--webhook", "not a URL of https", "--webhook https://alerts.example.net/hook")
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return exit.Usage("--webhook", "reports about your paths would go to "+u.Hostname()+" unencrypted",
			"https://, or http:// to 127.0.0.1")
	}
	return nil
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback() || strings.EqualFold(host, "localhost")
}

// event passes an event to the program and the webhook. A failure is a note, because the event is printed as well.
func (f *notifyFlags) event(ctx context.Context, cmd *cobra.Command, h record.Header, e *record.RecheckEvent) {
	if f.program == "" && f.webhook == "" {
		return
	}
	object, err := json.Marshal(&record.Recheck{Header: h, Tests: []record.RecheckTest{},
		Events: []record.RecheckEvent{*e}})
	if err != nil {
		console.Note(cmd, "an event cannot be reported: %v", err)
		return
	}
	if f.program != "" {
		if err := f.runProgram(ctx, e, object); err != nil {
			console.Note(cmd, "--on-change %s: %v", f.program, err)
		}
	}
	if f.webhook != "" {
		if err := f.post(ctx, object); err != nil {
			console.Note(cmd, "--webhook: %v", err)
		}
	}
}

// runProgram runs the program with an event in its environment and on standard input.
func (f *notifyFlags) runProgram(ctx context.Context, e *record.RecheckEvent, object []byte) error {
	limit := cmp.Or(f.limit, programTime)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var environment []string
	for name, value := range eventValues(e) {
		environment = append(environment, "FULLPIPE_"+name+"="+strings.ReplaceAll(render.Line(value), "\x00", ""))
	}
	said, err := hook.Run(ctx, []string{f.program}, environment, object)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("did not end within %v", limit)
	}
	if err != nil && len(said) > 0 {
		return fmt.Errorf("%w: %.400s", err, bytes.TrimSpace(said))
	}
	return err
}

// eventValues returns an event's values for the program's environment: numbers in bit/s and seconds.
func eventValues(e *record.RecheckEvent) map[string]string {
	values := map[string]string{"EVENT": string(e.Event), "PEER": e.Far, "DIRECTION": e.Direction, "METRIC": e.Metric,
		"AT": e.At.UTC().Format(time.RFC3339), "SINCE": e.Since.UTC().Format(time.RFC3339), "RUN_ID": e.RunID,
		"CONFIDENCE": e.Confidence, "BEFORE": e.Before, "AFTER": e.After, "TEXT": e.Text}
	for name, either := range map[string][2]*float64{"BEFORE": {e.BeforeBps, e.BeforeRTTMinS},
		"AFTER": {e.AfterBps, e.AfterRTTMinS}} {
		for _, v := range either {
			if v != nil {
				values[name] = strconv.FormatFloat(*v, 'g', -1, 64)
			}
		}
	}
	return values
}

// post sends an event, and repeats that after a temporary failure.
func (f *notifyFlags) post(ctx context.Context, object []byte) error {
	pause := f.pause
	if pause == 0 {
		pause = webhookPause
	}
	for try := 1; ; try++ {
		again, err := f.postOnce(ctx, object)
		if err == nil || !again || try == webhookTries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		pause *= 2
	}
}

func (f *notifyFlags) postOnce(ctx context.Context, object []byte) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, webhookTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.webhook, bytes.NewReader(object))
	if err != nil {
		return false, errors.New("not a URL that can be asked")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "fullpipe ("+build.Version()+")")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		var in *url.Error
		if errors.As(err, &in) { // which names the URL, and that may hold a secret
			err = in.Err
		}
		return !permanent(err), fmt.Errorf("%s: %w", request.URL.Host, err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, webhookReads)) // so that the connection may be used again
	if answer.StatusCode/100 != 2 {
		return answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests,
			fmt.Errorf("%s: status %s", request.URL.Host, answer.Status)
	}
	return false, nil
}

// permanent reports whether a request fails each time: the server's certificate is not valid for it, or it speaks no
// TLS.
func permanent(err error) bool {
	var certificate *tls.CertificateVerificationError
	var noTLS tls.RecordHeaderError
	return errors.As(err, &certificate) || errors.As(err, &noTLS) || errors.Is(err, http.ErrSchemeMismatch)
}
