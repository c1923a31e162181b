package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/watch"
	"github.com/fullpipe-net/fullpipe/internal/watch/paths"
)

// maxBaseline bounds the file that is read: 256 networks take some 2 MiB.
const maxBaseline = 16 << 20

// pathFollower finds out in a watch's views when the path to a network changes.
type pathFollower struct {
	cmd     *cobra.Command
	windows watch.Windows
	host    paths.Host
	file    string     // file of the baseline; "": none
	hook    *hookQueue // nil: none
	said    bool       // that it cannot be kept
	began   time.Time  // of the watch's clock: a wall clock that is set meanwhile does not matter
}

// baseline is what is stored of a host's paths.
type baseline struct {
	Schema string     `json:"schema"`
	Host   paths.Host `json:"host"`
}

const baselineSchema = "fullpipe/paths/v1"

// newPathFollower reads what is known from the file, where there is one.
func newPathFollower(cmd *cobra.Command, file string, h *hookQueue) *pathFollower {
	p := &pathFollower{cmd: cmd, file: file, hook: h}
	if file == "" {
		return p
	}
	known, err := readBaseline(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		console.Note(cmd, "the stored baseline of the paths cannot be read and is learnt again: %v", err)
	}
	p.host = known
	return p
}

func readBaseline(file string) (h paths.Host, err error) {
	f, err := os.Open(file)
	if err != nil {
		return h, err
	}
	defer f.Close()
	encoded, err := io.ReadAll(io.LimitReader(f, maxBaseline+1))
	if err != nil {
		return h, err
	}
	var b baseline
	switch {
	case len(encoded) > maxBaseline:
		return h, fmt.Errorf("%s: more than %d MiB", file, maxBaseline>>20)
	case json.Unmarshal(encoded, &b) != nil || b.Schema != baselineSchema:
		return h, fmt.Errorf("%s: not a baseline of fullpipe watch; remove it", file)
	}
	b.Host.Restore()
	return b.Host, nil
}

// follow is next with the paths followed: a view has what shifted before others see it.
func (p *pathFollower) follow(next following) following {
	return func(ctx context.Context, cfg watch.Config, each func(*watch.View) error) error {
		return next(ctx, cfg, func(v *watch.View) error {
			if windows := p.windows.Add(v); windows != nil {
				if p.began.IsZero() {
					p.began = time.Now().Round(0).Add(-v.At)
				}
				v.Shifts = p.host.Add(p.began.Add(v.At), windows)
				p.save()
			}
			if p.hook != nil {
				for i := range v.Shifts {
					for _, s := range report.PathShifts(&v.Shifts[i]) {
						p.hook.send(shiftEnvironment(&s))
					}
				}
			}
			return each(v)
		})
	}
}

// save keeps what is known, whole or not at all, for its owner alone.
func (p *pathFollower) save() {
	if p.file == "" {
		return
	}
	if err := p.write(); err != nil && !p.said {
		p.said = true
		console.Note(p.cmd, "the baseline of the paths cannot be stored: %v", err)
	}
}

func (p *pathFollower) write() error {
	encoded, err := json.Marshal(baseline{baselineSchema, p.host})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.file), 0o700); err != nil {
		return err
	}
	return atomicfile.WritePrivate(context.Background(), p.file, encoded)
}

// baselineFile is where a watch keeps what it knows of paths: only one that keeps something
// anyway, under its own addresses, and not root's in another user's home.
func (f *flags) baselineFile(cmd *cobra.Command) string {
	if f.anonymize || history.BehindSudo() != "" || f.onChange == "" && !console.IsSet(cmd, "record") {
		return ""
	}
	dir, err := store.Dir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "paths.json")
}

// shiftEnvironment returns the environment of a program on a change: numbers in seconds, bit/s, bytes or ratios.
func shiftEnvironment(s *record.PathShift) []string {
	before := s.BeforeECN
	after := s.AfterECN
	for _, pair := range [][2]*float64{{s.BeforeRTTMinS, s.AfterRTTMinS}, {s.BeforeBps, s.AfterBps},
		{s.BeforeRatio, s.AfterRatio}, {s.BeforeBytes, s.AfterBytes}} {
		if pair[0] != nil && pair[1] != nil {
			before = strconv.FormatFloat(*pair[0], 'g', -1, 64)
			after = strconv.FormatFloat(*pair[1], 'g', -1, 64)
		}
	}
	back := ""
	if s.Back {
		back = "1"
	}
	return []string{"FULLPIPE_CHANGE=" + render.Line(text.PathShift(s)), "FULLPIPE_METRIC=" + s.Metric,
		"FULLPIPE_NETWORK=" + s.Network, "FULLPIPE_NETWORKS=" + strconv.Itoa(s.Networks), "FULLPIPE_BACK=" + back,
		"FULLPIPE_BEFORE=" + before, "FULLPIPE_AFTER=" + after, "FULLPIPE_SINCE=" + s.Since.UTC().Format(time.RFC3339)}
}
