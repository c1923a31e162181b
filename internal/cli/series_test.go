package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/measure"
	"github.com/fullpipe-net/fullpipe/internal/cli/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/cli/sweep"
	"github.com/fullpipe-net/fullpipe/internal/cli/tune"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/store/pgtest"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// storedBefore returns the documents of a history that the program exported before keys were computed from values.
// The label args of each is its command line.
func storedBefore(t *testing.T) (docs []record.Document) {
	t.Helper()
	text := must.Get(os.ReadFile("testdata/series_v1.jsonl"))(t)
	for line := range strings.Lines(string(text)) {
		doc := must.Get(record.Decode([]byte(line), nil))(t)
		if !strings.HasPrefix(doc.Head().Envelope.Labels["args"], "recheck ") { // internal/cli/recheck has its own
			docs = append(docs, doc)
		}
	}
	return docs
}

// keyOf returns the key that the command line of a stored document leads to. change may change the flags first.
func keyOf(t *testing.T, doc record.Document, change func(*cobra.Command)) string {
	t.Helper()
	e, far := doc.Head().Envelope, record.Summarize(doc).Far
	name, args, _ := strings.Cut(e.Labels["args"], " ")
	cmd := map[string]*cobra.Command{"measure": measure.New(), "sweep": sweep.New(), "tune": tune.New(),
		"rfc6349": rfc6349.New()}[name]
	if cmd == nil {
		t.Fatalf("%q is no command of the table", name)
	}
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithCancel(cmd.Context())
		cancel() // it ends before it connects
		cmd.SetContext(ctx)
		if err := run(cmd, args); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", cmd.Name(), err)
		}
		return nil
	}
	change(cmd)
	ctx := history.WithSession(t.Context())
	cmd.SetArgs(strings.Fields(args))
	if err := cmd.ExecuteContext(ctx); err != nil {
		t.Fatalf("%s %s: %v", name, args, err)
	}
	return history.SessionOf(ctx).Series(e.HostID, far).Key()
}

func TestSeriesKey_DoesNotDependOnHelp(t *testing.T) {
	for name, change := range map[string]func(*cobra.Command){
		"the command's own texts": func(*cobra.Command) {},
		"the help page's defaults": func(cmd *cobra.Command) {
			plainDefaults(cmd)
		},
		"other texts": func(cmd *cobra.Command) {
			cmd.Use, cmd.Short = cmd.Name()+" HOST", "help"
			cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage, f.DefValue = "help", "automatic" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, doc := range storedBefore(t) {
				e := doc.Head().Envelope
				if key := keyOf(t, doc, change); key != e.PathKey {
					t.Errorf("%s: key %s, its history has %s", e.Labels["args"], key, e.PathKey)
				}
			}
		})
	}
}

func TestSeriesKey_ContinuesStoredHistories(t *testing.T) {
	for name, url := range map[string]func(t *testing.T) string{
		"sqlite":   func(*testing.T) string { return "" },
		"postgres": func(t *testing.T) string { return pgtest.Start(t).URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			s := must.Get(store.OpenAt(ctx, t.TempDir(), url(t)))(t)
			defer s.Close()
			docs := storedBefore(t)
			for _, doc := range docs {
				add(ctx, t, s, doc)
			}
			before := must.Get(s.Paths(ctx, 0, 100))(t)
			for i, doc := range docs { // each command line runs once more
				h := doc.Head()
				h.StartedAt = h.StartedAt.Add(time.Hour)
				h.ID, h.PathKey = record.NewID(h.StartedAt, [10]byte{byte(i)}), keyOf(t, doc, plainDefaults)
				for _, f := range record.Summarize(doc).Figures {
					past, err := s.Past(ctx, h.PathKey, f.Direction, h.StartedAt.AddDate(0, 0, -30), h.StartedAt)
					if f.GoodputBps != nil && h.Outcome == record.Done && (err != nil || len(past) == 0) {
						t.Errorf("%s: no earlier results of this path, %v", h.Labels["args"], err)
					}
				}
				add(ctx, t, s, doc)
			}
			after, err := s.Paths(ctx, 0, 100)
			if err != nil || len(after) != len(before) {
				t.Fatalf("%d series, %d before, %v", len(after), len(before), err)
			}
			runs := map[string]int{}
			for _, p := range before {
				runs[p.Path] = p.Runs
			}
			for _, p := range after {
				if p.Runs != 2*runs[p.Path] {
					t.Errorf("series %s: %d results, %d before", p.Path, p.Runs, runs[p.Path])
				}
			}
		})
	}
}

func add(ctx context.Context, t *testing.T, s *store.Store, doc record.Document) {
	t.Helper()
	text := must.Get(json.Marshal(doc))(t)
	if added, err := s.Add(ctx, text, nil); err != nil || !added {
		t.Fatalf("%s: added %v, %v", doc.Head().Labels["args"], added, err)
	}
}
