// Package history stores measured documents: it adds the envelope and the series of each, and selects the history of
// the right user.
package history

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// Series returns the path of a command's documents from the values of its options. It must be called after the command
// line and the configuration were read.
type Series func(hostID, far string) record.SeriesID

// AddFlags adds the flags that select whether a measuring command stores its record. always is the default. The records
// belong to the series of.
func AddFlags(cmd *cobra.Command, always bool, of Series) {
	fl := cmd.Flags()
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		SessionOf(cmd.Context()).Series = of
		// Only the command line is known here: the configuration is read later.
		if always && console.IsSet(cmd, "record") && console.IsSet(cmd, "no-history") {
			return exit.Usage("--record", "--no-history says the opposite", "one of the two")
		}
		return nil
	}
	if always {
		fl.Bool("no-history", false, "do not store the result in the history")
		fl.Bool("record", false, "store the result in the history even if it was measured in a lab")
	} else {
		fl.Bool("record", false, "store the result in the history")
	}
	fl.StringToString("label", nil, "`name=value`, kept with the result")
	AddStoreFlag(fl)
}

// begun is the start time of this process, with the monotonic clock.
var begun = time.Now()

// Seal adds the envelope of a measured document.
func Seal(cmd *cobra.Command, doc record.Document) {
	if cmd.Flags().Lookup("record") == nil {
		return
	}
	s := SessionOf(cmd.Context())
	e := NewEnvelope(doc, begun, time.Since(begun)) // by the monotonic clock
	e.TestID = s.TestID
	e.FarClock = s.FarClock()
	if labels, err := cmd.Flags().GetStringToString("label"); err == nil && len(labels) > 0 {
		e.Labels = labels
	}
	h := doc.Head()
	h.Envelope = e
	h.StartedAt = begun.UTC()
	var err error
	if e.HostID, err = hostID(cmd); err != nil && wanted(cmd) {
		console.Note(cmd, "this host has no name in records: %v", err)
	}
	if s.Series != nil {
		e.PathKey = s.Series(e.HostID, record.Summarize(doc).Far).Key()
	}
}

// NewEnvelope returns the envelope of a document that was measured on this host.
func NewEnvelope(doc record.Document, start time.Time, took time.Duration) *record.Envelope {
	seconds := took.Seconds()
	settings := host.SettingsInForce()
	_, captured := doc.(*record.Diagnose)
	if captured { // a capture's hosts are others
		settings = nil
	}
	return &record.Envelope{ID: NewID(start), Origin: record.Manual, Outcome: record.Summarize(doc).Outcome,
		TookS: &seconds, EndedAt: record.NsTime(start.Add(took).UnixNano()), ClockSynchronised: host.ClockSynchronised(),
		InForce: settings, Commit: build.This().Commit}
}

// hostID returns this host's ID in records, or "" if there is none and the record is not stored. It creates the ID if
// needed. Under sudo it is the ID in the caller's state directory, created by a process of the caller.
func hostID(cmd *cobra.Command) (string, error) {
	uid := BehindSudo()
	if uid == "" {
		dir, err := store.Dir()
		if err != nil {
			return "", err
		}
		if wanted(cmd) {
			return store.HostID(dir)
		}
		id, _ := store.ReadHostID(dir)
		return id, nil
	}
	if !wanted(cmd) {
		return "", nil
	}
	caller, err := user.LookupId(uid)
	if err != nil {
		return "", err
	}
	dir := store.DirIn(caller.HomeDir)
	if id, err := store.ReadHostID(dir); err == nil {
		return id, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), 5*time.Second)
	defer cancel()
	if err := asBehindSudo(ctx, cmd, uid, nil); err != nil {
		return "", err
	}
	return store.ReadHostID(dir)
}

// wanted reports whether to store this run's result. By default it is true except in a lab.
func wanted(cmd *cobra.Command) bool {
	switch {
	case console.IsSet(cmd, "record"):
		return true
	case cmd.Flags().Lookup("no-history") == nil || console.IsSet(cmd, "no-history"):
		return false
	}
	_, in, _ := lab.Around()
	return !in
}

// Keep adds a measured document to the history and prints its comparison with the path's earlier results. A failure is
// only a note, because the result was printed, but an error with --record.
func Keep(cmd *cobra.Command, doc record.Document) error {
	if doc.Head().Envelope == nil || !wanted(cmd) {
		return nil
	}
	ctx, cancel := KeepContext(cmd)
	defer cancel()
	switch err := KeepNow(ctx, cmd, doc); {
	case IsWaiting(err):
		NoteWaiting(cmd, err)
	case err != nil && console.IsSet(cmd, "record"):
		return Unkept(err)
	case err != nil:
		console.Note(cmd, "%v", Unkept(err))
	}
	return nil
}

// First returns the error of a command. If both errors are set it returns failed and notes unkept.
func First(cmd *cobra.Command, failed, unkept error) error {
	if failed != nil && unkept != nil {
		console.Note(cmd, "%v", unkept)
	}
	return cmp.Or(failed, unkept)
}

// UnkeptError reports that a document was not stored in the history.
type UnkeptError struct{ err error }

func (e *UnkeptError) Error() string { return "not kept in the history: " + e.err.Error() }

func (e *UnkeptError) Unwrap() error { return e.err }

// KeepNow adds a document to the history regardless of the flags.
func KeepNow(ctx context.Context, cmd *cobra.Command, doc record.Document) error {
	encoded, err := record.Encode(doc)
	if err != nil {
		return err
	}
	samples, err := record.EncodeSamples(doc)
	if err != nil {
		return err
	}
	if uid := BehindSudo(); uid != "" {
		return KeepAs(ctx, cmd, uid, encoded, samples)
	}
	s, err := Open(ctx, cmd)
	if err != nil {
		return err
	}
	defer s.Close()
	if os.Getenv(lab.PeerVariable) != "" { // no server is reachable: the parent command delivers it
		if left, err := s.Leave(encoded, samples); left || err != nil {
			return err
		}
	}
	if err := s.Keep(ctx, encoded, samples); err != nil {
		return err
	}
	if !console.WantsJSON(cmd) {
		switch line := Against(ctx, s, doc); {
		case line == "":
		case console.TakesOutput(cmd) || console.IsSet(cmd, "csv"):
			console.Note(cmd, "%s", line)
		default: // the report's last line
			fmt.Fprintln(cmd.OutOrStdout(), render.Line(line))
		}
	}
	if err := Trim(ctx, cmd, s); err != nil {
		console.Note(cmd, "stored in the history, but old results could not be removed: %v", err)
	}
	return nil
}

// Against returns a comparison of each direction with the results of its path in the last 30 days.
func Against(ctx context.Context, s *store.Store, doc record.Document) string {
	h := doc.Head()
	var lines []string
	for _, f := range record.Summarize(doc).Figures {
		past, err := s.Past(ctx, h.PathKey, f.Direction, h.StartedAt.AddDate(0, 0, -30), h.StartedAt)
		if err != nil {
			return ""
		}
		if line := text.Against(f, past); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// SealBrowsers adds the envelope of a browser's test. Its series is the browser's address.
func SealBrowsers(cmd *cobra.Command, doc *record.Measure, took time.Duration) {
	doc.Envelope = NewEnvelope(doc, doc.StartedAt, took)
	if dir, err := store.Dir(); err == nil {
		doc.HostID, _ = store.ReadHostID(dir) // no ID: nothing was stored yet
	}
	doc.PathKey = record.SeriesID{HostID: doc.HostID, Far: doc.Peer, Kind: "measure browser", Protocol: "tcp"}.Key()
}

// Unkept returns an UnkeptError with the given cause.
func Unkept(err error) *UnkeptError { return &UnkeptError{err} }
