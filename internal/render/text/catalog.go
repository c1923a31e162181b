package text

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// Parameter writes one entry of the catalog as a page.
func Parameter(w io.Writer, p catalog.Parameter) {
	title := p.Name + " (" + p.System + ", " + p.Kind
	if !p.Confirmed {
		title += ", not confirmed by a primary source"
	}
	fmt.Fprintf(w, "%s)\n\n", title)
	fmt.Fprintln(w, indent(p.Effect, "  ", render.Columns(w)))
	fmt.Fprintln(w)
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(w, "  %-14s%s\n", label, strings.TrimPrefix(indent(text, strings.Repeat(" ", 16), render.Columns(w)),
				strings.Repeat(" ", 16)))
		}
	}
	line("where", p.Where)
	line("type", strings.Trim(p.Type+", "+p.Unit, ", "))
	line("range", p.Range)
	for i, d := range p.Defaults {
		text := cmp.Or(d.Value, "none")
		if d.Since != "" {
			text += " since " + d.Since
		}
		if d.Unconfirmed {
			text += " [not confirmed]"
		}
		if d.Note != "" {
			text += " (" + d.Note + ")"
		}
		line([]string{"default", ""}[min(i, 1)], text)
	}
	line("concerns", p.Scope)
	line("takes effect", p.Acts)
	if p.Since != "" {
		line("there since", p.Since)
	}
	if p.Gone != "" {
		line("gone since", p.Gone)
	}
	for i, text := range p.Interactions {
		line([]string{"note", ""}[min(i, 1)], text)
	}
	for i, h := range p.Harmful {
		line([]string{"harmful", ""}[min(i, 1)], harm(h)+": "+h.Why)
	}
	for _, in := range p.Inert {
		since := "since " + in.Since
		if in.Unconfirmed {
			since += " [not confirmed]"
		}
		line("no effect", since+": "+in.Why)
	}
	line("source", p.Source)
}

func harm(h catalog.Harm) string {
	switch {
	case h.Above != 0:
		return fmt.Sprintf("above %d", h.Above)
	case h.Below != 0:
		return fmt.Sprintf("below %d", h.Below)
	case h.Set:
		return "set at all"
	}
	return h.Value
}

// Parameters writes a line for each entry of the catalog.
func Parameters(w io.Writer, all []catalog.Parameter) error {
	var rows [][]string
	system := ""
	for _, p := range all {
		if p.System != system {
			if system != "" {
				rows = append(rows, []string{""})
			}
			system = p.System
			rows = append(rows, []string{system, "default", "takes effect", "kind"})
		}
		d, _ := p.DefaultFor("")
		rows = append(rows, []string{"  " + p.Name, cmp.Or(d.Value, "none"), p.Acts, p.Kind})
	}
	return Columns(w, rows, 3)
}

// wrapWords returns the parts of a text that stay on one line: its words, each number with its unit.
func wrapWords(text string) (words []string) {
	for word := range strings.FieldsSeq(text) {
		if n := len(words); n > 0 && isUnit(strings.TrimRight(word, ".,;:)")) {
			if before := words[n-1]; before[len(before)-1] >= '0' && before[len(before)-1] <= '9' {
				words[n-1] += " " + word
				continue
			}
		}
		words = append(words, word)
	}
	return words
}

// isUnit reports whether a word is a unit that follows a number.
func isUnit(word string) bool {
	switch word {
	case "%", "ns", "µs", "ms", "s", "min", "B", "KiB", "MiB", "GiB", "TiB", "bytes",
		"bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s":
		return true
	}
	return false
}

// Paragraph prints a text after a label, wrapped at its terminal.
func Paragraph(w io.Writer, label, text string) error {
	_, err := fmt.Fprintln(w, hanging(w, label, text))
	return err
}

// indent wraps a paragraph at width columns and starts each line with prefix.
func indent(text, prefix string, width int) string {
	var lines []string
	line := prefix
	for _, word := range wrapWords(text) {
		if line != prefix && len([]rune(line))+1+len([]rune(word)) > width {
			lines = append(lines, line)
			line = prefix
		}
		if line != prefix {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, line), "\n")
}
