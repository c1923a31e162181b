package key

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/config"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// keysShown is what key show tells, and key new and rotate of one key, with its secret.
type keysShown struct {
	record.Header
	Keys []keyShown `json:"keys"`
}

type keyShown struct {
	Name     string     `json:"name,omitempty"`
	ID       string     `json:"id"`
	Key      string     `json:"key,omitempty"`
	MaxTimeS float64    `json:"max_time_s,omitempty"` // absent bounds are none
	MaxBytes int64      `json:"max_bytes,omitempty"`
	MaxBps   float64    `json:"max_rate_bps,omitempty"`
	From     []string   `json:"from,omitempty"`
	Until    *time.Time `json:"until,omitempty"`
	text     string     // of the bounds
}

func (d *keysShown) print(cmd *cobra.Command, file string) error {
	if console.WantsJSON(cmd) {
		return present.JSON(cmd.OutOrStdout(), d)
	}
	if len(d.Keys) == 0 {
		console.Note(cmd, "%s holds no keys", file)
	}
	return render.Written(cmd.OutOrStdout(), func(w io.Writer) error {
		for _, k := range d.Keys {
			fmt.Fprintf(w, "%-16s %s  %s\n", k.Name, k.ID, k.text)
		}
		return nil
	})
}

// printKey prints a key that was just made: alone on its line, as key files have it.
func printKey(cmd *cobra.Command, name []string, key probe.Key) error {
	if console.WantsJSON(cmd) {
		return present.JSON(cmd.OutOrStdout(), &keysShown{present.HeaderOf(cmd, "keys"),
			[]keyShown{{Name: strings.Join(name, ""), ID: key.ID().String(), Key: key.String()}}})
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), key)
	return err
}

// written is a flag's text, kept as it was given once it can be read.
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
	if t.into == nil { // as pflag asks whether a default is none
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
