package hook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// Target is a program and a webhook that receive events. Both are optional.
type Target struct {
	Program string
	Webhook string        // URL
	Pause   time.Duration // before a webhook is tried again; 0: webhookPause
	Limit   time.Duration // of the program; 0: programTime
	Once    bool          // the caller repeats what failed
}

// Limits of the program and the webhook: neither may delay the tests.
const (
	programTime  = time.Minute
	webhookTime  = 10 * time.Second
	webhookTries = 3
	webhookPause = 2 * time.Second // doubled each time
	webhookReads = 64 << 10        // bytes of an answer
)

// Register adds the flags.
func (t *Target) Register(fl *pflag.FlagSet) {
	fl.StringVar(&t.Program, "on-change", "", "run this `program` for each event: no shell, no arguments; the event "+
		"is on standard input as JSON, and in recheck also in FULLPIPE_EVENT, _PEER, _METRIC …")
	fl.StringVar(&t.Webhook, "webhook", "", "send each event as JSON to this `URL` by POST")
}

// Check looks for the program and checks the URL. The error is a usage error.
func (t *Target) Check() error {
	if t.Program != "" {
		path, err := exec.LookPath(t.Program)
		if err != nil {
			return exit.Usage("--on-change", exit.Plain(err), "a program, without arguments: --on-change /usr/local/bin/alert")
		}
		t.Program = path
	}
	if t.Webhook == "" {
		return nil
	}
	if err := mesh.CheckWebhook(t.Webhook); err != nil {
		return exit.Usage("--webhook", err.Error(), "--webhook https://alerts.example.net/hook")
	}
	return nil
}

// Send passes an event, as JSON, to the program and the webhook. values are added to the program's environment as
// FULLPIPE_NAME. The error has a line for each that failed.
func (t *Target) Send(ctx context.Context, values map[string]string, object []byte) error {
	var failed []error
	if t.Program != "" {
		if err := t.run(ctx, values, object); err != nil {
			failed = append(failed, fmt.Errorf("--on-change %s: %w", t.Program, err))
		}
	}
	if t.Webhook != "" {
		if err := t.post(ctx, object); err != nil {
			failed = append(failed, fmt.Errorf("--webhook: %w", err))
		}
	}
	return errors.Join(failed...)
}

// run runs the program with an event in its environment and on standard input.
func (t *Target) run(ctx context.Context, values map[string]string, object []byte) error {
	limit := cmp.Or(t.Limit, programTime)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var environment []string
	for name, value := range values {
		environment = append(environment, "FULLPIPE_"+name+"="+strings.ReplaceAll(render.Line(value), "\x00", ""))
	}
	said, err := Run(ctx, []string{t.Program}, environment, object)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("did not end within %v", limit)
	}
	if err != nil && len(said) > 0 {
		return fmt.Errorf("%w: %.400s", err, bytes.TrimSpace(said))
	}
	return err
}

// post sends an event, and repeats that after a temporary failure.
func (t *Target) post(ctx context.Context, object []byte) error {
	pause := cmp.Or(t.Pause, webhookPause)
	for try := 1; ; try++ {
		again, err := Post(ctx, t.Webhook, object)
		if err == nil || !again || t.Once || try == webhookTries {
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

// Post sends JSON to a URL. again reports whether a failure may be temporary.
func Post(ctx context.Context, to string, object []byte) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, webhookTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(object))
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
