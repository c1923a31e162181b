package history

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/settings"
	"github.com/fullpipe-net/fullpipe/internal/config"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/secret"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// Use opens the history for one use, and stores there what waited for that.
func Use(cmd *cobra.Command, do func(context.Context, *store.Store) error) error {
	return UseUndelivered(cmd, func(ctx context.Context, s *store.Store) error {
		if err := s.Deliver(ctx); IsUnavailable(err) {
			return err
		} else if err != nil {
			console.Note(cmd, "%v", err)
		}
		return do(ctx, s)
	})
}

// UseUndelivered opens the history for one use, without a delivery of what waits on this host.
func UseUndelivered(cmd *cobra.Command, do func(context.Context, *store.Store) error) error {
	s, err := Open(cmd.Context(), cmd)
	if err != nil {
		return err
	}
	err = do(cmd.Context(), s)
	if errors.Is(err, store.ErrNotFound) {
		err = exit.Usage("ID", exit.Plain(err), "an id of fullpipe history, its first or last characters, or last")
	}
	return errors.Join(err, s.Close())
}

// IsUnavailable says that there is no use in asking the history's server once more.
func IsUnavailable(err error) bool {
	away := (*store.Unavailable)(nil)
	return errors.As(err, &away)
}

// Trim keeps the history within the configuration's bounds.
func Trim(ctx context.Context, cmd *cobra.Command, s *store.Store) error {
	file, _, err := settings.Read(cmd)
	if err != nil {
		return err
	}
	keep := store.KeepByDefault
	h := file.History
	const day = 24 * time.Hour
	keep.Bytes = cmp.Or(h.MostBytes, keep.Bytes)
	keep.Results = cmp.Or(h.MostResults, keep.Results)
	keep.Samples = cmp.Or(time.Duration(h.SamplesDays)*day, keep.Samples)
	keep.Runs = cmp.Or(time.Duration(h.RunsDays)*day, keep.Runs)
	return s.Trim(ctx, time.Now(), keep)
}

// AddStoreFlag adds --store.
func AddStoreFlag(fl *pflag.FlagSet) {
	fl.String("store", "", "keep the history in PostgreSQL: `URL`, postgres://USER@HOST/DATABASE; empty: in a file. Put "+
		"the password in "+secret.Store+" or ~/.pgpass: other users can see command lines (ps)")
}

// StoreURL returns the URL of the history and the name of its source: the flag --store, else the environment variable,
// else the configuration. The URL "" means the user's file.
func StoreURL(cmd *cobra.Command, file *config.File) (url, says string) {
	if f := cmd.Flag("store"); f != nil && f.Changed {
		return f.Value.String(), "--store"
	}
	if url, said := os.LookupEnv(secret.Store); said {
		return url, secret.Store
	}
	if file == nil {
		return "", ""
	}
	return file.History.Store, "history.store"
}

// CheckStore returns an error for an invalid store URL. Commands call it before they measure.
func CheckStore(cmd *cobra.Command, file *config.File) error {
	if cmd.Flag("store") == nil {
		return nil
	}
	url, says := StoreURL(cmd, file)
	if url == "" {
		return nil
	}
	if err := store.CheckURL(url); err != nil {
		return exit.Usage(says, exit.Plain(err), "postgres://USER@HOST:5432/DATABASE?sslmode=verify-full")
	}
	return nil
}

// Open opens the history that this command uses.
func Open(ctx context.Context, cmd *cobra.Command) (*store.Store, error) {
	dir, err := store.Dir()
	if err != nil {
		return nil, err
	}
	file, name, err := settings.Read(cmd)
	if err != nil {
		return nil, exit.Usage(name, exit.Plain(err), "docs/configuration.md")
	}
	if err := CheckStore(cmd, file); err != nil {
		return nil, err
	}
	url, _ := StoreURL(cmd, file)
	s, err := store.OpenAt(ctx, dir, url)
	if err == nil {
		s.ClientResultsADay = file.History.ClientResultsADay
	}
	return s, err
}

// KeepContext returns the context for storing a result. It ends after 10 s, also after an interrupt. With a database
// server it ends 0.7 s after an interrupt, and the document waits on this host.
func KeepContext(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	const atOnce = 700 * time.Millisecond
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), 10*time.Second)
	file, _, _ := settings.Read(cmd)
	if url, _ := StoreURL(cmd, file); url == "" {
		return ctx, cancel
	}
	stop := context.AfterFunc(cmd.Context(), func() { time.AfterFunc(atOnce, cancel) })
	return ctx, func() { stop(); cancel() }
}

// IsWaiting reports whether an error says that a document waits on this host for the history's server.
func IsWaiting(err error) bool {
	waiting := (*store.Waiting)(nil)
	return errors.As(err, &waiting)
}

// NoteWaiting notes that a document waits.
func NoteWaiting(cmd *cobra.Command, err error) {
	waiting := (*store.Waiting)(nil)
	if errors.As(err, &waiting) {
		err = waiting
	}
	console.Note(cmd, "kept on this host until the history's server stores it: %v", err)
}

// Deliver stores what a lab's command left in the outbox, since no server is in reach there.
func Deliver(cmd *cobra.Command) {
	if cmd.Flag("store") == nil || !console.IsSet(cmd, "record") {
		return
	}
	ctx, cancel := KeepContext(cmd)
	defer cancel()
	s, err := Open(ctx, cmd)
	if err != nil {
		return // the command in the lab said so
	}
	defer s.Close()
	if err := s.Deliver(ctx); err != nil {
		NoteWaiting(cmd, err)
	}
}

// ShortRuns turns the store's runs, the newest first, into the document's, the oldest first.
func ShortRuns(runs []store.Run) []record.HistoryRun {
	out := []record.HistoryRun{}
	for i := len(runs) - 1; i >= 0; i-- {
		out = append(out, runs[i].HistoryRun)
	}
	return out
}
