// Package tui shows `watch` on a terminal: a table of this host's connections that is drawn each period, sorted,
// grouped and filtered by keys, in which a row opens into its evidence. It reads the documents of [record.Watch] and
// nothing else. Updates and drawing are pure functions; only Run touches the terminal.
package tui

import (
	"context"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// period is what one period of the watch showed.
type period struct{ doc *record.Watch }

// ended is the end of the watch, with its error.
type ended struct{ err error }

// repaint is the time to draw all once more after the terminal has become wider: of the first picture the
// renderer knows only what lies within the old width, and would leave the rest standing when it changes.
type repaint struct{}

// repaintAfter is long enough for that first picture.
const repaintAfter = 100 * time.Millisecond

// Run shows the documents of watch on a terminal until the user quits, ctx ends or watch returns. It returns after
// watch has: watch's error, or nil where the user quit.
func Run(ctx context.Context, in io.Reader, out io.Writer, watch func(context.Context,
	func(*record.Watch)) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	program := tea.NewProgram(model{}, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithoutSignalHandler(), tea.WithFilter(fitted))
	done := make(chan error, 1)
	go func() {
		err := watch(ctx, func(doc *record.Watch) { program.Send(period{render.Document(doc)}) })
		done <- err
		program.Send(ended{err})
	}()
	last, failed := program.Run()
	quit := ctx.Err() == nil
	cancel()
	err := <-done
	if m, ok := last.(model); quit && ok && !m.ended {
		return nil // how a user ends it is no failure
	}
	if err == nil && failed != nil && ctx.Err() == nil {
		err = failed
	}
	return err
}

// largest is more columns or rows than screens have. Of what a terminal claims beyond, a picture would take all memory.
const largest = 2000

// Fits reports whether a terminal of this size can be drawn on.
func Fits(columns, rows int) bool { return columns <= largest && rows <= largest }

// fitted drops a size that does not fit: typed or pasted text may claim one.
func fitted(_ tea.Model, msg tea.Msg) tea.Msg {
	if size, is := msg.(tea.WindowSizeMsg); is && !Fits(size.Width, size.Height) {
		return nil
	}
	return msg
}

// Init has nothing to wait for but the first period.
func (m model) Init() tea.Cmd { return nil }

// Update returns the model after a key, a period or another size of the terminal.
func (m model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		wider := m.width > 0 && msg.Width > m.width
		m.width = msg.Width
		m.height = msg.Height
		if wider {
			return m, tea.Tick(repaintAfter, func(time.Time) tea.Msg { return repaint{} })
		}
	case repaint:
		return m, tea.ClearScreen
	case period:
		m = m.withPeriod(msg.doc)
	case ended:
		m.ended = true
		return m, tea.Quit
	case tea.KeyPressMsg:
		var quit bool
		m, quit = m.pressed(msg.String(), msg.Key().Text)
		if quit {
			return m, tea.Quit
		}
	}
	return m, nil
}

// View draws the model.
func (m model) View() tea.View {
	v := tea.NewView(m.draw())
	v.AltScreen = true
	v.WindowTitle = "fullpipe watch"
	return v
}
