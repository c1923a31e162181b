package diagnose

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

var update = flag.Bool("update", false, "write the golden files")

// goldenVerdicts are all recorded fixtures' verdicts, each in a file of its own of one
// archive. A change of a rule shows here as a difference to be judged by eye and
// accepted with -update.
type goldenVerdicts struct{ archive txtar.Archive }

func (g *goldenVerdicts) add(name string, v verdict.Verdict) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s (%s), %s confidence\n", v.Limiter, v.Subtype, v.Confidence)
	for _, n := range v.Shares.Top() {
		fmt.Fprintf(&b, "  %s %.2f %%\n", n, 100*v.Shares[n])
	}
	fmt.Fprintf(&b, "candidates %v\n", v.Candidates)
	for _, e := range v.Evidence {
		fmt.Fprintf(&b, "%s: %s\n", e.Limiter, text.Sentence(e))
	}
	g.archive.Files = append(g.archive.Files, txtar.File{Name: name, Data: b.Bytes()})
}

// line adds a line to the last verdict.
func (g *goldenVerdicts) line(text string) {
	last := &g.archive.Files[len(g.archive.Files)-1]
	last.Data = append(last.Data, text+"\n"...)
}

// compare compares with the golden file, or writes it.
func (g *goldenVerdicts) compare(t *testing.T, name string) {
	t.Helper()
	path, got := filepath.Join("testdata", name), txtar.Format(&g.archive)
	if *update {
		must.Do(t, os.WriteFile(path, got, 0o644))
		return
	}
	want := must.Get(os.ReadFile(path))(t)
	if !bytes.Equal(got, want) {
		t.Errorf("verdicts changed (go test ./internal/diagnose -update accepts them):\n%s", diff.Diff(name, want, "now",
			got))
	}
}

func TestGoldenVerdictsOfTransfers(t *testing.T) {
	files, err := filepath.Glob("../verdict/live/testdata/*.json.gz")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d recorded transfers, %v", len(files), err)
	}
	var golden goldenVerdicts
	for _, file := range files {
		r := recordedTransfer(t, file)
		name := strings.TrimSuffix(filepath.Base(file), ".json.gz")
		golden.add(name+" both", live.Judge(r))
		oneEnd := func(end *transfer.End) *transfer.Result {
			half := transfer.Result{Spec: r.Spec, Complete: r.Complete}
			if end == r.Near {
				half.Near = end
			} else {
				half.Far = end
			}
			return &half
		}
		golden.add(name+" sender", live.Judge(oneEnd(r.Sender())))
		golden.add(name+" receiver", live.Judge(oneEnd(r.Receiver())))
	}
	golden.compare(t, "verdicts-transfers.txtar")
}

func recordedTransfer(t *testing.T, name string) *transfer.Result {
	t.Helper()
	file := must.Get(os.Open(name))(t)
	defer file.Close()
	unpacked := must.Get(gzip.NewReader(file))(t)
	var r transfer.Result
	must.Do(t, json.NewDecoder(unpacked).Decode(&r))
	return &r
}

func TestGoldenVerdictsOfCaptures(t *testing.T) {
	files, err := filepath.Glob("testdata/*.pcap.zst")
	if err != nil || len(files) < len(captured) {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	slices.Sort(files)
	var golden goldenVerdicts
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".pcap.zst")
		segments := load(t, file)
		d := judged(t, segments)
		golden.add(name, d.Verdict)
		golden.line("reliable: " + text.TrustLine(d.Trust))
		golden.line(text.CapturedDirectionSentence(d))
		for _, m := range mutations {
			if d := judged(t, m.of(load(t, file))); d != nil {
				golden.add(name+", "+m.name, d.Verdict)
				golden.line("reliable: " + text.TrustLine(d.Trust))
			}
		}
	}
	golden.compare(t, "verdicts-captures.txtar")
}
