// Package openmetrics writes pages of metrics: the text format 0.0.4 of Prometheus and
// OpenMetrics 1.0.
package openmetrics

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
)

// Page is a page of metrics while it is written.
type Page struct {
	Prefix string // of all names
	Open   bool   // OpenMetrics instead of Prometheus' own format

	text strings.Builder
}

// Family begins the samples of one name; a counter's name is without "_total", a unit may
// be "".
func (p *Page) Family(name, kind, unit, help string) {
	if kind == "counter" && !p.Open {
		name += "_total" // OpenMetrics names the family without it
	}
	fmt.Fprintf(&p.text, "# HELP %s%s %s\n# TYPE %s%s %s\n", p.Prefix, name, help, p.Prefix, name, kind)
	if p.Open && unit != "" {
		fmt.Fprintf(&p.text, "# UNIT %s%s %s\n", p.Prefix, name, unit)
	}
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// shown replaces what a terminal would obey, of names that programs gave themselves: the
// format has no escapes for it.
func shown(r rune) rune {
	if r != '\n' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)) {
		return unicode.ReplacementChar
	}
	return r
}

// Sample adds a value with its labels, each a name and a text.
func (p *Page) Sample(name string, value float64, labels ...string) {
	p.text.WriteString(p.Prefix + name)
	for i := 0; i+1 < len(labels); i += 2 {
		open := ","
		if i == 0 {
			open = "{"
		}
		fmt.Fprintf(&p.text, `%s%s="%s"`, open, labels[i], labelEscapes.Replace(strings.Map(shown, labels[i+1])))
	}
	if len(labels) > 0 {
		p.text.WriteByte('}')
	}
	p.text.WriteString(" " + Number(value) + "\n")
}

// Number is a value as the format has it.
func Number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// End writes the whole page.
func (p *Page) End(w io.Writer) error {
	if p.Open {
		p.text.WriteString("# EOF\n")
	}
	_, err := io.WriteString(w, p.text.String())
	return err
}
