package tui

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// model is all that the picture depends on.
type model struct {
	width, height int
	doc           *record.Watch
	past          map[string][]float64 // goodput of each row in bit/s, oldest first
	paused        bool                 // periods are not taken
	frozen        bool                 // rows stay where they are
	order         []string             // of a frozen table
	sorting       sorting
	grouping      grouping
	filter        string
	typing        bool // the filter
	help          bool
	selected      string // a row's key
	open          bool   // the selected row
	ended         bool
	shift         string  // the newest change of a path, as a sentence
	shiftAtS      float64 // the time of that change, since the watch began
}

// remembered is how many periods the sparkline of a row goes back.
const remembered = 60

// withPeriod returns the model after a period.
func (m model) withPeriod(doc *record.Watch) model {
	if n := len(doc.PathChanges); n > 0 {
		m.shift = text.PathShift(&doc.PathChanges[n-1])
		m.shiftAtS = doc.AtS
	}
	if m.paused {
		return m
	}
	m.doc = doc
	past := make(map[string][]float64, len(m.past))
	for _, r := range rows(doc, m.grouping) {
		line := append(slices.Clone(m.past[r.key]), r.bps)
		past[r.key] = line[max(0, len(line)-remembered):]
	}
	for key, line := range m.past { // one that is silent now keeps its past until that is all silence
		if _, ok := past[key]; !ok && slices.Max(line) > 0 {
			line = append(slices.Clone(line), 0)
			past[key] = line[max(0, len(line)-remembered):]
		}
	}
	m.past = past
	return m
}

// pressed returns the model after a key, given by its name and its text.
func (m model) pressed(key, text string) (after model, quit bool) {
	switch {
	case key == "ctrl+c":
		return m, true
	case m.typing:
		return m.typed(key, text), false
	case m.help:
		m.help = false
		return m, false
	}
	switch key {
	case "q":
		return m, true
	case "esc":
		switch {
		case m.open:
			m.open = false
		default:
			m.filter = ""
		}
	case "?":
		m.help = true
	case "/":
		m.typing = true
	case "space", "p":
		m.paused = !m.paused
	case "f":
		m.frozen = !m.frozen
		m.order = nil
		if m.frozen {
			for _, r := range m.shown() {
				m.order = append(m.order, r.key)
			}
		}
	case "s":
		m.sorting = (m.sorting + 1) % sortings
	case "g":
		m.grouping = (m.grouping + 1) % groupings
		m.past = nil
		m.selected = ""
		m.open = false
		m.order = nil
		m.frozen = false
	case "enter", "right":
		m = m.moved(0)
		m.open = m.selected != ""
	case "left":
		m.open = false
	case "up", "k":
		m = m.moved(-1)
	case "down", "j":
		m = m.moved(1)
	case "pgup":
		m = m.moved(-10)
	case "pgdown":
		m = m.moved(10)
	case "home":
		m = m.moved(-1 << 20)
	case "end":
		m = m.moved(1 << 20)
	}
	return m, false
}

// typed is the model after a key while the filter is typed.
func (m model) typed(key, text string) model {
	switch key {
	case "enter":
		m.typing = false
	case "esc":
		m.typing = false
		m.filter = ""
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(m.filter)
		m.filter = m.filter[:len(m.filter)-n]
	default:
		if len(m.filter)+len(text) <= 64 {
			m.filter += text
		}
	}
	return m
}

// moved returns the model with another row selected, by rows below the selected one.
func (m model) moved(by int) model {
	all := m.shown()
	if len(all) == 0 {
		m.selected = ""
		return m
	}
	at := slices.IndexFunc(all, func(r row) bool { return r.key == m.selected })
	m.selected = all[min(max(at+by, 0), len(all)-1)].key
	return m
}

// shown are the rows that the filter lets through, in the order that was asked for.
func (m model) shown() []row {
	if m.doc == nil {
		return nil
	}
	all := slices.DeleteFunc(rows(m.doc, m.grouping), func(r row) bool {
		return !strings.Contains(strings.ToLower(r.text()), strings.ToLower(m.filter))
	})
	slices.SortStableFunc(all, func(a, b row) int {
		return cmp.Or(cmp.Compare(m.place(a), m.place(b)), m.sorting.compare(a, b), cmp.Compare(a.key, b.key))
	})
	return all
}

// place returns a row's position in a frozen table. New rows come last.
func (m model) place(r row) int {
	if !m.frozen {
		return 0
	}
	if at := slices.Index(m.order, r.key); at >= 0 {
		return at
	}
	return len(m.order)
}
