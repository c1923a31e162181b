package history

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/input"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

func newExport() *cobra.Command {
	var csv, anonymize bool
	cmd := &cobra.Command{
		Use: "export [PATH]", Short: "print stored results as JSON lines, or as CSV",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return history.Use(cmd, func(ctx context.Context, s *store.Store) error {
				runs, err := runsAsked(ctx, s, args)
				if err != nil {
					return err
				}
				out := bufio.NewWriter(render.NewWriter(cmd.OutOrStdout()))
				if csv {
					err = exportTable(out, runs, anonymize)
				} else {
					err = exportLines(ctx, out, s, runs, anonymize)
				}
				return errors.Join(err, out.Flush())
			})
		},
	}
	cmd.Flags().BoolVar(&csv, "csv", false, "one line of comma-separated values for each direction")
	cmd.Flags().BoolVar(&anonymize, "anonymize", false, "replace addresses, names, identifiers "+
		"and labels by invented ones")
	return cmd
}

// exportLines writes each record on a line, the oldest first, with its samples inside.
func exportLines(ctx context.Context, out io.Writer, s *store.Store, runs []store.Run, anonymize bool) error {
	var names record.Anonymizer
	for i := len(runs) - 1; i >= 0; i-- {
		stored, samples, err := s.Get(ctx, runs[i].ID)
		if err != nil {
			return err
		}
		if anonymize {
			doc, err := record.Decode(stored, samples)
			if err != nil {
				return fmt.Errorf("%s: %w", runs[i].ID, err)
			}
			if doc, err = names.Document(doc); err != nil {
				return err
			}
			if stored, err = record.Encode(doc); err != nil {
				return err
			}
		}
		if stored, err = labelled(stored, runs[i].Labels, anonymize); err != nil {
			return err
		}
		var line bytes.Buffer
		if err := json.Compact(&line, stored); err != nil {
			return err
		}
		if len(samples) > 0 { // before the last brace
			line.Truncate(line.Len() - 1)
			fmt.Fprintf(&line, `,"samples":%s}`, samples)
		}
		line.WriteByte('\n')
		if _, err := out.Write(line.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// labelled returns a record with the present labels of its run instead of the stored ones.
func labelled(stored []byte, labels map[string]string, anonymize bool) ([]byte, error) {
	var of struct{ Labels map[string]string }
	if err := json.Unmarshal(stored, &of); err != nil || anonymize || maps.Equal(of.Labels, labels) {
		return stored, err
	}
	var one map[string]json.RawMessage
	if err := json.Unmarshal(stored, &one); err != nil {
		return nil, err
	}
	delete(one, "labels")
	if len(labels) > 0 {
		text, err := json.Marshal(labels)
		if err != nil {
			return nil, err
		}
		one["labels"] = text
	}
	return json.Marshal(one)
}

func newImport() *cobra.Command {
	var own bool
	cmd := &cobra.Command{
		Use:   "import FILE|-",
		Short: "import results that --json, export or iperf3 --json printed",
		Long: `import adds the results in FILE to the history: the output of history export,
of commands with --json (also of older versions) and of iperf3 --json. One file may hold
several of them, one after the other. Each result keeps its time, and importing it twice
changes nothing. The limiter of iperf3 results is unknown. The encoding is UTF-8, or UTF-16
with a byte order mark (as written by > in PowerShell). Documents that are not results are
reported and skipped; the exit status is then 1.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := input.Open(cmd, args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			if own {
				return history.UseUndelivered(cmd, func(ctx context.Context, s *store.Store) error {
					return importOwn(ctx, cmd, s,
						file)
				})
			}
			return history.Use(cmd, func(ctx context.Context, s *store.Store) error {
				var n imported
				err := eachDocument(file, func(doc, samples []byte) error { return n.add(ctx, s, doc, samples) },
					func(err error) error {
						n.refused++
						if n.refused == 1 {
							n.why = err
						}
						return nil
					})
				results := "results"
				if n.added == 1 {
					results = "result"
				}
				console.Note(cmd, "%d %s kept, %d were there already", n.added, results, n.there)
				if n.gone > 0 {
					console.Note(cmd, "%d are %v", n.gone, store.ErrGone)
				}
				if err == nil && n.refused > 1 {
					err = fmt.Errorf("%d documents are no results; the first, %w", n.refused, n.why)
				} else if err == nil {
					err = n.why
				}
				if err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
				return history.Trim(ctx, cmd, s)
			})
		},
	}
	cmd.Flags().BoolVar(&own, "own", false, "they were measured on this host just now, by root")
	_ = cmd.Flags().MarkHidden("own")
	return cmd
}

// importOwn stores results of root for the user who called sudo. It creates the user's host ID first.
func importOwn(ctx context.Context, cmd *cobra.Command, s *store.Store, in io.Reader) error {
	dir, err := store.Dir()
	if err != nil {
		return err
	}
	if _, err := store.HostID(dir); err != nil {
		return err
	}
	kept := 0 // none if root only needs the host ID
	err = eachDocument(in, func(doc, samples []byte) error {
		kept++
		switch err := s.Keep(ctx, doc, samples); {
		case errors.Is(err, store.ErrClientQuota):
			return nil
		case err != nil:
			return err
		}
		if decoded, err := record.Decode(doc, nil); err == nil {
			if line := history.Against(ctx, s, decoded); line != "" {
				console.Note(cmd, "%s", line)
			}
		}
		return nil
	}, func(err error) error { return err })
	if history.IsWaiting(err) {
		history.NoteWaiting(cmd, err)
		return nil
	}
	if err != nil || kept == 0 {
		return err
	}
	return history.Trim(ctx, cmd, s)
}

// eachDocument reads documents one after the other. It calls refuse with the error of a document that is no result, and
// stops if refuse returns an error.
func eachDocument(in io.Reader, keep func(doc, samples []byte) error, refuse func(error) error) error {
	text := &documentText{in: io.LimitReader(input.Text(in), 1<<34)}
	d := json.NewDecoder(text)
	for at := 1; ; at++ {
		text.left = record.MostBytes + 1
		var one json.RawMessage
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("document %d: %w", at, err)
		}
		doc, err := record.Imported(one)
		var samples []byte
		if err == nil {
			doc, samples, err = record.Split(doc)
		}
		switch {
		case err != nil:
			err = refuse(fmt.Errorf("document %d: %w", at, err))
		default:
			if err = keep(doc, samples); err != nil {
				err = fmt.Errorf("document %d: %w", at, err)
			}
		}
		if err != nil {
			return err
		}
	}
}

// documentText limits the bytes of one document, because a decoder buffers a whole document.
type documentText struct {
	in   io.Reader
	left int // bytes that the present document may still take
}

func (t *documentText) Read(p []byte) (int, error) {
	if t.left <= 0 {
		return 0, fmt.Errorf("longer than %s", units.Size(record.MostBytes))
	}
	n, err := t.in.Read(p[:min(len(p), t.left)])
	t.left -= n
	return n, err
}

// imported counts documents by outcome.
type imported struct {
	added, there, gone int
	refused            int
	why                error // of the first
}

func (n *imported) add(ctx context.Context, s *store.Store, doc, samples []byte) error {
	added, err := s.Add(ctx, doc, samples)
	switch {
	case errors.Is(err, store.ErrGone):
		n.gone++
	case err != nil:
		return err
	case added:
		n.added++
	default:
		n.there++
	}
	return nil
}
