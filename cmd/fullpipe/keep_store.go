package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/config"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

func addStoreFlag(fl *pflag.FlagSet) {
	fl.String("store", "", "the history is in PostgreSQL: `URL`, postgres://USER@HOST/DATABASE; empty: in a file. Its "+
		"password belongs into "+store.URLVariable+" or ~/.pgpass, since every user of this host sees command lines")
}

// storeURL is where the history is, and who says so: the flag --store, else the environment,
// else the configuration. "" is the user's file.
func storeURL(cmd *cobra.Command, file *config.File) (url, says string) {
	if f := cmd.Flag("store"); f != nil && f.Changed {
		return f.Value.String(), "--store"
	}
	if url, said := os.LookupEnv(store.URLVariable); said {
		return url, store.URLVariable
	}
	if file == nil {
		return "", ""
	}
	return file.History.Store, "history.store"
}

// checkStore refuses a URL before anything is measured that could not be kept there.
func checkStore(cmd *cobra.Command, file *config.File) error {
	if cmd.Flag("store") == nil {
		return nil
	}
	url, says := storeURL(cmd, file)
	if url == "" {
		return nil
	}
	if err := store.CheckURL(url); err != nil {
		return &usageError{says, plain(err), "postgres://USER@HOST:5432/DATABASE?sslmode=verify-full"}
	}
	return nil
}

// openHistory opens the history that this command uses.
func openHistory(ctx context.Context, cmd *cobra.Command) (*store.Store, error) {
	dir, err := store.Dir()
	if err != nil {
		return nil, err
	}
	file, name, err := readConfig(cmd)
	if err != nil {
		return nil, &usageError{name, plain(err), "docs/configuration.md"}
	}
	if err := checkStore(cmd, file); err != nil {
		return nil, err
	}
	url, _ := storeURL(cmd, file)
	s, err := store.OpenAt(ctx, dir, url)
	if err == nil {
		s.ClientResultsADay = file.History.ClientResultsADay
	}
	return s, err
}

// toKeep is how long keeping a result may take, whether the command was interrupted or not. A
// server of the history is not waited for after an interrupt: what it does not take at once
// waits on this host.
func toKeep(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	const atOnce = 700 * time.Millisecond
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), 10*time.Second)
	file, _, _ := readConfig(cmd)
	if url, _ := storeURL(cmd, file); url == "" {
		return ctx, cancel
	}
	stop := context.AfterFunc(cmd.Context(), func() { time.AfterFunc(atOnce, cancel) })
	return ctx, func() { stop(); cancel() }
}

func isWaiting(err error) bool {
	waiting := (*store.Waiting)(nil)
	return errors.As(err, &waiting)
}

func noteWaiting(cmd *cobra.Command, err error) {
	waiting := (*store.Waiting)(nil)
	if errors.As(err, &waiting) {
		err = waiting
	}
	note(cmd, "kept on this host until the history's server stores it: %v", err)
}

// deliver stores what a lab's command left in the outbox, since no server is in reach there.
func deliver(cmd *cobra.Command) {
	if cmd.Flag("store") == nil || !flagged(cmd, "record") {
		return
	}
	ctx, cancel := toKeep(cmd)
	defer cancel()
	s, err := openHistory(ctx, cmd)
	if err != nil {
		return // the command in the lab said so
	}
	defer s.Close()
	if err := s.Deliver(ctx); err != nil {
		noteWaiting(cmd, err)
	}
}
