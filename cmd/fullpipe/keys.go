package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/config"
	"github.com/fullpipe-net/fullpipe/internal/output"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/render"
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
	cmd.PersistentFlags().StringVar(&file, "keys", "", "the file of keys by name")
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
			h.Secret = probe.NewKey().String()
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
			_, err := fmt.Fprintln(cmd.OutOrStdout(), h.Secret)
			return err
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&h.MaxTime, "max-time", "", "how long one test of this key may last")
	fl.StringVar(&h.MaxBytes, "max-bytes", "", "payload that one test may move in each direction")
	fl.StringVar(&h.MaxRate, "max-rate", "", "rate that one test may take in each direction")
	fl.StringSliceVar(&h.From, "from", nil, "networks that it may be used from")
	return cmd
}

func newKeyRotate(file *string) *cobra.Command {
	overlap := duration(24 * time.Hour)
	cmd := &cobra.Command{
		Use:   "rotate NAME",
		Short: "give NAME a new key and print it; the old one holds for the overlap",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key := probe.NewKey().String()
			err := changeKeys(cmd, *file, func(k *config.Keys) error {
				return k.Rotate(args[0], key, time.Now().Add(time.Duration(overlap)).UTC().Round(time.Second))
			})
			if err == nil {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), key)
			}
			return err
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
			return render.Written(cmd.OutOrStdout(), func(w io.Writer) error {
				for _, name := range k.Names() {
					h := k.Key[name]
					key, err := probe.ParseKey(h.Secret)
					if err != nil {
						return fmt.Errorf("key.%s: %w", name, err)
					}
					fmt.Fprintf(w, "%-16s %s  %s\n", name, key.ID(), boundsText(h))
				}
				return nil
			})
		},
	}
}

func boundsText(h *config.Holder) string {
	var parts []string
	for _, b := range [][2]string{{"max-time", h.MaxTime}, {"max-bytes", h.MaxBytes}, {"max-rate", h.MaxRate},
		{"from", strings.Join(h.From, ",")}} {
		if b[1] != "" {
			parts = append(parts, b[0]+" "+b[1])
		}
	}
	if !h.Until.IsZero() {
		parts = append(parts, "until "+h.Until.Format(time.RFC3339))
	}
	if len(parts) == 0 {
		return "no bounds of its own"
	}
	return strings.Join(parts, ", ")
}

// changeKeys writes the file anew, whole or not at all, for its owner alone.
func changeKeys(cmd *cobra.Command, name string, change func(*config.Keys) error) error {
	k, err := readKeys(cmd.Context(), name)
	if os.IsNotExist(err) {
		k, err = &config.Keys{Key: map[string]*config.Holder{}}, nil
		var made *os.File
		if made, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
			err = made.Close()
		}
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
	file, err := output.Create(cmd.Context(), name)
	if err != nil {
		return err
	}
	defer file.Discard()
	if _, err := file.Write(text); err != nil {
		return err
	}
	return file.Commit()
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
		return &usageError{"--keys", err.Error(), "fullpipe key new NAME --keys " + r.name}
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
