// Package key is the command key, which creates, lists and rotates the keys of serve.
package key

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/cli/serverkey"
	"github.com/fullpipe-net/fullpipe/internal/config"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// New returns the command key.
func New() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "key",
		Short: "create, list and rotate the keys of fullpipe serve",
		Long: `key creates a key, or edits the file of serve --keys: keys by name, each with
its own limits (max-time, max-bytes, max-rate, from, until; docs/configuration.md). A
running serve reads the file again when it has changed. A rotated key stays valid during its
overlap.`,
		Example: `  fullpipe key new > key
  fullpipe key new office --keys keys.toml --max-rate 100mbit --from 192.0.2.0/24
  fullpipe key rotate office --keys keys.toml --overlap 168h
  fullpipe key show --keys keys.toml
  fullpipe serve --keys keys.toml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&file, "keys", "", "the `file` of keys by name")
	cmd.AddCommand(newNew(&file), newRotate(&file), newShow(&file))
	return cmd
}

func newNew(file *string) *cobra.Command {
	var h config.Holder
	cmd := &cobra.Command{
		Use:   "new [NAME]",
		Short: "print a new key; with --keys also store it there as NAME",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key := probe.NewKey()
			h.Secret = key.String()
			if _, err := h.Bounds(); err != nil { // the flags have read all others
				return exit.Usage("--from", strings.TrimPrefix(err.Error(), "from: "), "--from 192.0.2.0/24")
			}
			switch {
			case (len(args) > 0) != (*file != ""):
				return exit.Usage("NAME", "NAME and --keys belong together", "fullpipe key new NAME --keys FILE")
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
	fl.Var(&written{&h.MaxTime, new(cmdflag.Period)}, "max-time", "maximum duration of one test")
	fl.Var(&written{&h.MaxBytes, new(units.Size)}, "max-bytes", "maximum payload of one test in each direction")
	fl.Var(&written{&h.MaxRate, new(units.Rate)}, "max-rate", "maximum rate of one test in each direction")
	fl.StringSliceVar(&h.From, "from", nil, "`networks` of allowed clients")
	return cmd
}

func newRotate(file *string) *cobra.Command {
	overlap := cmdflag.Duration(24 * time.Hour)
	cmd := &cobra.Command{
		Use:   "rotate NAME",
		Short: "give NAME a new key; the old one stays valid for the overlap",
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
	cmd.Flags().Var((*cmdflag.Period)(&overlap), "overlap", "how long the old key stays valid with the new one")
	return cmd
}

func newShow(file *string) *cobra.Command {
	return &cobra.Command{
		Use:   "show",
		Short: "list names, ids and limits, never the keys",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := serverkey.ReadKeys(cmd.Context(), *file)
			if err != nil {
				return err
			}
			doc := keysShown{present.HeaderOf(cmd, "keys"), []keyShown{}}
			all, err := serverkey.Holders(k)
			if err != nil {
				return exit.Usage(*file, exit.Plain(err), "docs/configuration.md")
			}
			for _, of := range all {
				h := k.Key[of.Name]
				one := keyShown{Name: of.Name, ID: of.Key.ID().String(), MaxTimeS: of.Time.Seconds(), MaxBytes: of.Bytes,
					MaxBps: of.Bps, From: h.From, text: boundsText(h)}
				if !h.Until.IsZero() {
					one.Until = &h.Until
				}
				doc.Keys = append(doc.Keys, one)
			}
			return doc.print(cmd, *file)
		},
	}
}

// changeKeys changes the file of keys atomically, under a lock. A missing file is created for its owner only.
func changeKeys(cmd *cobra.Command, name string, change func(*config.Keys) error) error {
	if name == "" {
		return serverkey.ErrNoFile
	}
	return atomicfile.Update(cmd.Context(), name, func() ([]byte, error) {
		k, err := serverkey.ReadKeys(cmd.Context(), name)
		if errors.Is(err, fs.ErrNotExist) {
			k = &config.Keys{Key: map[string]*config.Holder{}}
		} else if err != nil {
			return nil, err
		}
		if err := change(k); err != nil {
			return nil, exit.Usage("NAME", exit.Plain(err), "fullpipe key show --keys "+name)
		}
		text, err := k.Text()
		if err == nil {
			k, err = config.ParseKeys(text) // checks that the new file can be read
		}
		if err == nil {
			_, err = serverkey.Holders(k)
		}
		if err != nil {
			return nil, exit.Usage("--keys", exit.Plain(err), "docs/configuration.md")
		}
		return text, nil
	})
}

// keysShown is the output of key show, and of key new and rotate, with the secret.
type keysShown struct {
	record.Header
	Keys []keyShown `json:"keys"`
}

type keyShown struct {
	Name     string     `json:"name,omitempty"`
	ID       string     `json:"id"`
	Key      string     `json:"key,omitempty"`
	MaxTimeS float64    `json:"max_time_s,omitempty"` // absent: unlimited
	MaxBytes int64      `json:"max_bytes,omitempty"`
	MaxBps   float64    `json:"max_rate_bps,omitempty"`
	From     []string   `json:"from,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
	text     string     // of the limits
}

func (d *keysShown) print(cmd *cobra.Command, file string) error {
	if console.WantsJSON(cmd) {
		return present.JSON(cmd.OutOrStdout(), d)
	}
	if len(d.Keys) == 0 {
		console.Note(cmd, "%s has no keys", file)
	}
	return render.Written(cmd.OutOrStdout(), func(w io.Writer) error {
		for _, k := range d.Keys {
			fmt.Fprintf(w, "%-16s %s  %s\n", k.Name, k.ID, k.text)
		}
		return nil
	})
}

// printKey prints a new key alone on its line, like in a key file.
func printKey(cmd *cobra.Command, name []string, key probe.Key) error {
	if console.WantsJSON(cmd) {
		return present.JSON(cmd.OutOrStdout(), &keysShown{present.HeaderOf(cmd, "keys"),
			[]keyShown{{Name: strings.Join(name, ""), ID: key.ID().String(), Key: key.String()}}})
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), key)
	return err
}

// written is a flag's text that stays as the user wrote it, after a check.
type written struct {
	into *string
	read pflag.Value
}

func (t *written) Set(s string) error {
	err := t.read.Set(s)
	if _, is := t.read.(*cmdflag.Period); is {
		s = cmdflag.WithSeconds(s)
	}
	*t.into = s
	return err
}

func (t *written) String() string {
	if t.into == nil { // pflag compares this with the default
		return ""
	}
	return *t.into
}

func (t *written) Type() string { return t.read.Type() }

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
