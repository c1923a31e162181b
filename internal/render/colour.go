package render

import (
	"bytes"
	"io"
)

// Meaning is the reason why a terminal shows a text in colour.
type Meaning int

// Plain text has no colour.
const (
	Plain   Meaning = iota
	Answer          // the verdict
	Action          // the thing to do
	Passed          // a criterion that passed
	Failed          // a criterion that failed
	Warning         // a reason to doubt the figures
)

// sequences are ANSI's, in the colours of the user's own palette.
var sequences = map[Meaning]string{Answer: "\x1b[1m", Action: "\x1b[36m", Passed: "\x1b[32m", Failed: "\x1b[1;31m",
	Warning: "\x1b[33m"}

const resetColour = "\x1b[0m"

// mark is a coloured part of a page: offsets of its bytes.
type mark struct {
	start, end int
	meaning    Meaning
}

// Paint writes text. Within Written, a terminal shows it in the colour of its meaning.
func Paint(w io.Writer, m Meaning, text string) {
	p, ok := w.(*page)
	if ok && p.colours && m != Plain && text != "" {
		p.marks = append(p.marks, mark{p.Len(), p.Len() + len(text), m})
	}
	io.WriteString(w, text)
}

// showsColours reports whether w is a terminal that shows colours.
func showsColours(w io.Writer) bool {
	c, ok := w.(interface{ Colours() bool })
	return ok && c.Colours()
}

// writeTo writes the page with its text escaped and its colours as sequences.
func (p *page) writeTo(w io.Writer) error {
	if len(p.marks) == 0 {
		_, err := NewWriter(w).Write(p.Bytes())
		return err
	}
	var out bytes.Buffer
	escaped := NewWriter(&out)
	at := 0
	for _, m := range p.marks {
		escaped.Write(p.Bytes()[at:m.start])
		out.WriteString(sequences[m.meaning])
		escaped.Write(p.Bytes()[m.start:m.end])
		out.WriteString(resetColour)
		at = m.end
	}
	escaped.Write(p.Bytes()[at:])
	if behind, ok := w.(*Writer); ok {
		w = behind.w
	}
	_, err := w.Write(out.Bytes())
	return err
}
