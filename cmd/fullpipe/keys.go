package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/config"
	"github.com/fullpipe-net/fullpipe/internal/output"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

func newKey() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "key",
		Short: "make, list and rotate the keys of fullpipe serve",
		Long: `key makes a key, or keeps the file of serve --keys: keys by name, each with its own bounds
(max-time, max-bytes, max-rate, from, until; docs/configuration.md). A running serve reads
the file again when it has changed. A rotated key holds on until its overlap is over.`,
		Example: `  fullpipe key new > key
  fullpipe key new office --keys keys.toml --max-rate 100mbit --from 192.0.2.0/24
  fullpipe key rotate office --keys keys.toml --overlap 168h
  fullpipe key show --keys keys.toml
  fullpipe serve --keys keys.toml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&file, "keys", "", "the `file` of keys by name")
	cmd.AddCommand(newKeyNew(&file), newKeyRotate(&file), newKeyShow(&file))
	return cmd
}

func newKeyNew(file *string) *cobra.Command {
	var h config.Holder
	cmd := &cobra.Command{
		Use:   "new [NAME]",
		Short: "print a new key; with --keys also keep it there as NAME",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key := probe.NewKey()
			h.Secret = key.String()
			if _, err := h.Bounds(); err != nil { // the flags have read all others
				return &usageError{"--from", strings.TrimPrefix(err.Error(), "from: "), "--from 192.0.2.0/24"}
			}
			switch {
			case (len(args) > 0) != (*file != ""):
				return &usageError{"NAME", "a name and the file that keeps it belong together", "fullpipe key new NAME --keys FILE"}
			case *file != "":
				err := changeKeys(cmd, *file, func(k *config.Keys) error {
					if k.Key[args[0]] != nil {
						return fmt.Errorf("there is a key called %s; rotate gives it another secret", args[0])
					}
					k.Key[args[0]] = &h
					return nil
				})
				if err != nil {
					return err
				}
			}
			return printKey(cmd, args, key)
		},
	}
	fl := cmd.Flags()
	fl.Var(&written{&h.MaxTime, new(period)}, "max-time", "how long one test of this key may last")
	fl.Var(&written{&h.MaxBytes, new(units.Size)}, "max-bytes", "payload that one test may move in each direction")
	fl.Var(&written{&h.MaxRate, new(units.Rate)}, "max-rate", "rate that one test may take in each direction")
	fl.StringSliceVar(&h.From, "from", nil, "`networks` that it may be used from")
	return cmd
}

func newKeyRotate(file *string) *cobra.Command {
	overlap := duration(24 * time.Hour)
	cmd := &cobra.Command{
		Use:   "rotate NAME",
		Short: "give NAME a new key and print it; the old one holds for the overlap",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key := probe.NewKey()
			err := changeKeys(cmd, *file, func(k *config.Keys) error {
				return k.Rotate(args[0], key.String(), time.Now().Add(time.Duration(overlap)).UTC().Round(time.Second))
			})
			if err != nil {
				return err
			}
			return printKey(cmd, args, key)
		},
	}
	cmd.Flags().Var((*period)(&overlap), "overlap", "how long the old key holds beside the new one")
	return cmd
}

func newKeyShow(file *string) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "list names, ids and bounds, never the keys",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := readKeys(cmd.Context(), *file)
			if err != nil {
				return err
			}
			doc := keysShown{headerOf(cmd, "keys"), []keyShown{}}
			for _, name := range k.Names() {
				h := k.Key[name]
				key, err := probe.ParseKey(h.Secret)
				if err != nil {
					return fmt.Errorf("key.%s: %w", name, err)
				}
				bounds, err := h.Bounds()
				if err != nil {
					return fmt.Errorf("key.%s: %w", name, err)
				}
				one := keyShown{Name: name, ID: key.ID().String(), MaxTimeS: bounds.Time.Seconds(), MaxBytes: int64(bounds.Bytes),
					MaxBps: float64(bounds.Rate), From: h.From, text: boundsText(h)}
				if !h.Until.IsZero() {
					one.Until = &h.Until
				}
				doc.Keys = append(doc.Keys, one)
			}
			return doc.print(cmd, *file)
		},
	}
}

// changeKeys writes the file anew, whole or not at all, for its owner alone.
func changeKeys(cmd *cobra.Command, name string, change func(*config.Keys) error) error {
	k, err := readKeys(cmd.Context(), name)
	if errors.Is(err, fs.ErrNotExist) {
		k, err = &config.Keys{Key: map[string]*config.Holder{}}, nil
	}
	if err != nil {
		return err
	}
	if err := change(k); err != nil {
		return &usageError{"NAME", plain(err), "fullpipe key show --keys " + name}
	}
	text, err := k.Text()
	if err == nil {
		_, err = config.ParseKeys(text) // what is written is what can be read
	}
	if err != nil {
		return &usageError{"--keys", plain(err), "docs/configuration.md"}
	}
	return output.WritePrivate(cmd.Context(), name, text)
}

func readKeys(ctx context.Context, name string) (*config.Keys, error) {
	if name == "" {
		return nil, &usageError{"--keys", "no file is named", "--keys keys.toml"}
	}
	file, err := openFile(ctx, name)
	if err != nil {
		return nil, err
	}
	text, err := readAll(file, name, config.Most)
	if err != nil {
		return nil, err
	}
	k, err := config.ParseKeys(text)
	if err != nil {
		return nil, &usageError{name, plain(err), "docs/configuration.md"}
	}
	return k, nil
}

// keyring is a file of keys that is read again when it has changed. What cannot be read
// leaves what was read last, and is said once.
type keyring struct {
	ctx  context.Context
	name string
	note func(string)

	mu      sync.Mutex // guards what follows
	read    time.Time  // the file's, when it was read last
	size    int64
	holders []probe.Holder
}

func newKeyring(ctx context.Context, name string, note func(string)) (*keyring, error) {
	r := &keyring{ctx: ctx, name: name, note: note}
	return r, r.load()
}

func (r *keyring) load() error {
	info, err := os.Stat(r.name)
	if err != nil {
		return &usageError{"--keys", plain(err), "fullpipe key new NAME --keys " + r.name}
	}
	if info.ModTime().Equal(r.read) && info.Size() == r.size {
		return nil
	}
	r.read, r.size = info.ModTime(), info.Size()
	k, err := readKeys(r.ctx, r.name)
	if err != nil {
		return err
	}
	var holders []probe.Holder
	for _, name := range k.Names() {
		h := k.Key[name]
		key, err := probe.ParseKey(h.Secret)
		if err != nil {
			return &usageError{r.name, fmt.Sprintf("key.%s: %v", name, err), "fullpipe key new NAME --keys " + r.name}
		}
		b, err := h.Bounds()
		if err != nil {
			return err
		}
		holders = append(holders, probe.Holder{Name: name, Key: key, From: b.From, Until: h.Until, Time: b.Time,
			Bytes: int64(b.Bytes), Bps: float64(b.Rate)})
	}
	r.holders = holders
	return nil
}

// now are the holders as the file has them.
func (r *keyring) now() []probe.Holder {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(); err != nil {
		r.note(fmt.Sprintf("note: %s; the keys stay as they were\n", plain(err)))
	}
	return r.holders
}
