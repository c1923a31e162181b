package ui

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/settings"
	"github.com/fullpipe-net/fullpipe/internal/config"
	"github.com/fullpipe-net/fullpipe/internal/didyoumean"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/secret"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

// retester tests paths for the page with the command whose results make their series. It puts a record's far end on a
// command line only where this host's own name and the command's options lead to the same key.
type retester struct {
	cmd     *cobra.Command
	retests []Retest
}

// Retest is a command that tests a path again.
type Retest struct {
	Command string
	// Series returns the key of the series that the command, with a far end's name as its one argument, measures for.
	Series func(ctx context.Context, file *config.File, hostID, name string) (string, error)
}

// pageTests are the tests that the page offers.
func pageTests(cmd *cobra.Command, retests []Retest) *web.Tests {
	r := &retester{cmd, retests}
	return &web.Tests{Run: r.run, May: func(_ context.Context, p store.Series) error {
		_, err := r.command(p)
		return err
	}}
}

// errOtherOptions says that no command line is known that measures for the series.
var errOtherOptions = errors.New("it was measured with other options, from another host or by another program: " +
	"the command that did can be run again")

// command returns the arguments that measure for a path's series.
func (r *retester) command(p store.Series) ([]string, error) {
	file, _, err := settings.Read(r.cmd)
	if err != nil {
		return nil, err
	}
	dir, err := store.Dir()
	if err != nil {
		return nil, err
	}
	hostID, err := store.ReadHostID(dir)
	if err != nil {
		return nil, errOtherOptions
	}
	var names []string
	for _, name := range file.Names() {
		if file.Far[name].Peer == p.Far {
			names = append(names, name)
		}
	}
	if didyoumean.IsWord(p.Far) && !strings.HasPrefix(p.Far, lab.Prefix) {
		names = append(names, p.Far)
	}
	for _, name := range names {
		for _, t := range r.retests {
			if key, err := t.Series(r.cmd.Context(), file, hostID, name); err == nil && key == p.Path {
				return r.arguments(t.Command, name), nil
			}
		}
	}
	return nil, errOtherOptions
}

func (r *retester) arguments(command, name string) []string {
	args := []string{command, "--json-stream"}
	if _, in, _ := lab.Around(); in {
		args = append(args, "--record")
	}
	return append(args, "--", name)
}

// retestEnds is how long a test that is stopped may take to end.
const retestEnds = 5 * time.Second

// run tests a path as a process of its own, as if its user had called the command.
func (r *retester) run(ctx context.Context, p store.Series, each func(web.TestNews)) error {
	args, err := r.command(p)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.CommandContext(ctx, program, args...)
	child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	child.WaitDelay = retestEnds
	child.Env = secret.Without(os.Environ(), secret.Key, secret.Store)
	if url, says := history.StoreURL(r.cmd, nil); says == "--store" { // on a command line its password could be read
		child.Env = append(child.Env, secret.Store+"="+url)
	}
	var said bytes.Buffer
	child.Stderr = &said
	out, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	failed := retestNews(out, each)
	ended := child.Wait()
	var nonzero *exec.ExitError
	switch {
	case failed != nil:
		return failed
	case errors.As(ended, &nonzero) && nonzero.ExitCode() == exit.No: // it reported a dip or a change
		return nil
	case ended != nil:
		return fmt.Errorf("%w: %.400s", ended, strings.TrimSpace(said.String()))
	}
	return nil
}

// retestLine is a line of measure or recheck --json-stream.
type retestLine struct {
	Event     string `json:"event"`
	Direction string `json:"direction"`
	record.Interval
	Error  *record.Failure       `json:"error"`
	Tests  []record.RecheckTest  `json:"tests"`
	Events []record.RecheckEvent `json:"events"`
}

// mostLine bounds what is read of a line.
const mostLine = 8 << 20

// retestNews forwards the lines of a test. It returns the test's failure.
func retestNews(out io.Reader, each func(web.TestNews)) (failed error) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, mostLine)
	for lines.Scan() {
		var one retestLine
		if json.Unmarshal(lines.Bytes(), &one) != nil {
			continue
		}
		if one.Event == "interval" {
			each(web.TestNews{Direction: one.Direction, AtS: one.EndS, GoodputBps: one.GoodputBps})
			continue
		}
		news := web.TestNews{}
		for i := range one.Events {
			news.Said = strings.TrimSpace(news.Said + " " + text.RecheckSentence(&one.Events[i]) + ".")
		}
		failure := one.Error
		why := ""
		for i := range one.Tests {
			if t := &one.Tests[i]; t.Error != nil {
				failure = t.Error
			} else if t.Skipped != "" {
				why = text.SkippedText(t.Skipped)
			}
		}
		switch {
		case failure != nil:
			failed = errors.New(strings.TrimSuffix(failure.Message+"; try "+failure.Try, "; try "))
		case why != "":
			failed = errors.New(why)
		default:
			failed = nil
			each(news)
		}
	}
	_, _ = io.Copy(io.Discard, out) // a line that is too long must not hold it up
	return failed
}
