package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestAPublicServerIsNotAskedTwice: one that cannot even be found has had its turn, and the
// command says so; one's own is asked as often as the command is called.
func TestAPublicServerIsNotAskedTwice(t *testing.T) {
	t.Setenv("FULLPIPE_HISTORY", t.TempDir())
	ask := func(peer string) (status int, one record.RecheckTest, said string) {
		var out, errs bytes.Buffer
		status = run(t.Context(), []string{"recheck", peer, "-t", "200ms", "--json"},
			console.NewStreams(strings.NewReader(""), &out, &errs))
		var doc record.Recheck
		if err := json.Unmarshal(out.Bytes(), &doc); err != nil || len(doc.Tests) != 1 {
			t.Fatalf("%v: %s%s", err, out.String(), errs.String())
		}
		return status, doc.Tests[0], out.String()
	}
	for n, want := range []string{"", "policy"} {
		status, one, said := ask("ndt7://far.invalid:1")
		if one.Skipped != want || (one.Error == nil) != (n > 0) || one.NextAt == nil || n > 0 && status != exit.Done ||
			one.NextAt.Sub(one.At) > 15*time.Hour {
			t.Errorf("%d: status %d, %s", n, status, said)
		}
	}
	for range 2 {
		_, one, said := ask("ndt7://127.0.0.1:1")
		if one.Skipped != "" || one.Error == nil || one.Error.Code != "refused" {
			t.Error(said)
		}
	}
}

func TestRecheckRefuses(t *testing.T) {
	t.Setenv("FULLPIPE_HISTORY", t.TempDir())
	for line, want := range map[string]string{
		"":                                "PEER: none is given",
		"ndt7://ndt.example.net -t 11s":   "10 s at the most",
		"lab:wan-40ms":                    "made anew",
		"b --every 5m":                    "--every",
		"b --every 6h --quiet-hours 0-24": "--quiet-hours",
		"b --quiet-hours 00:00-23:30":     "less than an hour",
		"b --zone Nowhere/Land":           "--zone",
		"b --time 2m":                     "--time",
		"b --listen 127.0.0.1:0":          "--listen",
		"b --every 6h --listen 0.0.0.0:1": "open to other hosts",
		"b --webhook http://a.example/":   "unencrypted",
		"b --on-change /nowhere/alert":    "--on-change",
		"b --direction sideways":          "--direction",
	} {
		var errs bytes.Buffer
		status := run(t.Context(), append([]string{"recheck"}, strings.Fields(line)...),
			console.NewStreams(strings.NewReader(""),
				&bytes.Buffer{}, &errs))
		if status != exit.Misused || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: status %d, %s", line, status, errs.String())
		}
	}
}

// TestRecheckStays: with --every the command prints a line for each visit, serves metrics and
// ends on request; without, a far end that is gone is a failure.
func TestRecheckStays(t *testing.T) {
	t.Setenv("FULLPIPE_HISTORY", t.TempDir())
	args := []string{"recheck", "127.0.0.1:1", "--key", strings.Repeat("5a", 32), "--json"}
	lines, out := io.Pipe()
	said, errs := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append(args, "--every", "6h", "--listen", "127.0.0.1:0"), console.NewStreams(strings.NewReader(""),
			out, errs))
		out.Close()
		errs.Close()
	}()
	where := must.Get(bufio.NewReader(said).ReadString('\n'))(t)
	go io.Copy(io.Discard, said)
	var doc record.Recheck
	must.Do(t, json.NewDecoder(lines).Decode(&doc))
	if len(doc.Tests) != 1 || doc.Tests[0].Error == nil || doc.Tests[0].Error.Code != "refused" ||
		doc.Tests[0].NextAt == nil {
		t.Errorf("%+v", doc)
	}
	answer := must.Get(http.Get(strings.TrimSpace(strings.TrimPrefix(where, "serving "))))(t)
	page, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if want := `fullpipe_recheck_tests_total{peer="127.0.0.1:1",origin="scheduled",outcome="failed"} 1`; err != nil ||
		!strings.Contains(string(page), want) {
		t.Errorf("%v: no %s in\n%s", err, want, page)
	}
	stop()
	if status := <-ended; status != exit.Done {
		t.Errorf("status %d", status)
	}
	if status := run(t.Context(), args, console.NewStreams(strings.NewReader(""), io.Discard,
		io.Discard)); status != exit.Failed {
		t.Errorf("once: status %d", status)
	}
}
