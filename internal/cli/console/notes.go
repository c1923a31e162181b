package console

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
)

// FailureText returns an error as lines for a terminal.
func FailureText(f record.Failure) string { return text.Failure(render.Document(f)) }

// Progress returns the stream of notes and progress.
func Progress(cmd *cobra.Command) io.Writer {
	if IsQuiet(cmd) {
		return io.Discard
	}
	return cmd.ErrOrStderr()
}

// Note prints a line on standard error. In a server's log the format is the kind of event.
func Note(cmd *cobra.Command, format string, args ...any) {
	if IsQuiet(cmd) {
		return
	}
	if log := LogOf(cmd); log != nil {
		log.Note(serverlog.Kind{Event: format}, fmt.Sprintf(format, args...))
		return
	}
	fmt.Fprintln(cmd.ErrOrStderr(), render.Line(fmt.Sprintf(format, args...)))
}

// PrintFailure prints a failure on standard error.
func PrintFailure(cmd *cobra.Command, f record.Failure) {
	fmt.Fprintln(cmd.ErrOrStderr(), "fullpipe: "+FailureText(f))
}

// HoldNotes keeps the lines for standard error while a table is on the terminal. flush prints them.
func HoldNotes(cmd *cobra.Command) (flush func()) {
	was := cmd.ErrOrStderr()
	notes := &BoundedText{}
	cmd.SetErr(notes)
	return func() {
		cmd.SetErr(was)
		_, _ = was.Write(notes.Kept())
	}
}

// BoundedText keeps the first 64 KiB of its text and drops the rest.
type BoundedText struct {
	mu   sync.Mutex // guards text
	text []byte
}

func (b *BoundedText) Write(p []byte) (int, error) {
	const maxBytes = 64 << 10
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p[:min(len(p), maxBytes-len(b.text))]...)
	return len(p), nil
}

// Kept returns the text that was kept.
func (b *BoundedText) Kept() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.text)
}

// LogStderr makes a server's standard error a log until end: the command's lines have a quota, and no slow reader
// delays the server. After end, lines are written directly.
func LogStderr(cmd *cobra.Command) (end func()) {
	// Without this a reader that has gone ends the process (os/signal, SIGPIPE).
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	l := NewLog(cmd, serverlog.Config{Out: cmd.ErrOrStderr()})
	cmd.SetErr(l)
	return l.Close
}

// suppressed is a line of EventLog in JSON.
type suppressed struct {
	At    time.Time `json:"at"`
	Event string    `json:"event"` // suppressed, or unread
	Of    string    `json:"of,omitempty"`
	Count int64     `json:"count"`
}

func (s suppressed) String() string {
	s.At = time.Now().UTC()
	text, _ := json.Marshal(s) // a time, words and a number
	return string(text)
}

// EventLog returns a log of a command's events on standard output: each kind has a quota, and no slow reader delays the
// command. The caller closes it.
func EventLog(cmd *cobra.Command) *serverlog.Log {
	c := serverlog.Config{Out: cmd.OutOrStdout()}
	if WantsJSON(cmd) {
		c.Summary = func(k serverlog.Kind, count int64, _ string) string {
			return suppressed{Event: "suppressed", Of: k.Event, Count: count}.String()
		}
		c.Lost = func(count int64) string { return suppressed{Event: "unread", Count: count}.String() }
	}
	return NewLog(cmd, c)
}

// NewLog returns a log of a command. It has one quota for strangers with the log of standard error. The caller closes
// it.
func NewLog(cmd *cobra.Command, c serverlog.Config) *serverlog.Log {
	c.Clean = render.Line
	c.Other = LogOf(cmd)
	return serverlog.New(c)
}

// LogOf returns a command's log, or nil if its standard error is not one.
func LogOf(cmd *cobra.Command) *serverlog.Log {
	l, _ := cmd.ErrOrStderr().(*serverlog.Log)
	return l
}

// IsSet reports whether a command has a flag of that name and it is set.
func IsSet(cmd *cobra.Command, name string) bool {
	is, err := cmd.Flags().GetBool(name)
	return err == nil && is
}

// IsQuiet reports whether only errors belong on standard error.
func IsQuiet(cmd *cobra.Command) bool {
	v, err := cmd.Flags().GetBool("quiet")
	return err == nil && v
}

// TakesOutput reports whether standard output takes a page or a picture, named by "-".
func TakesOutput(cmd *cobra.Command) bool {
	for _, name := range []string{"html", "picture"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Value.String() == "-" {
			return true
		}
	}
	return false
}

// WantsJSON reports whether standard output takes JSON only.
func WantsJSON(cmd *cobra.Command) bool {
	v, err := cmd.Flags().GetBool("json")
	return err == nil && v || WantsStream(cmd)
}

// WantsStream reports whether a command prints one JSON object a line while it runs.
func WantsStream(cmd *cobra.Command) bool {
	v, err := cmd.Flags().GetBool("json-stream")
	return err == nil && v
}

// Confirm asks a question on standard error and reads the reply from a terminal.
func Confirm(cmd *cobra.Command, question string) error {
	in := cmd.InOrStdin()
	if !IsTerminal(in) || WantsJSON(cmd) {
		return exit.Usage("--yes", "there is nobody to ask", "--yes to make the changes, --dry-run to see them")
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s [y/N] ", question)
	type line struct {
		text string
		err  error
	}
	typed := make(chan line, 1)
	go func() { // a read from a terminal cannot be broken off: it ends with the program
		text, err := bufio.NewReader(in).ReadString('\n')
		typed <- line{text, err}
	}()
	var answer line
	select {
	case <-cmd.Context().Done():
		return cmd.Context().Err()
	case answer = <-typed:
	}
	if answer.err != nil && !errors.Is(answer.err, io.EOF) {
		return answer.err
	}
	if word := strings.ToLower(strings.TrimSpace(answer.text)); word != "y" && word != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}
