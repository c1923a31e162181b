// Command session draws a recorded terminal session as an SVG file: docs/session.svg (`make pictures`). It reads what a
// command printed on a terminal from standard input. The picture follows the reader's light or dark scheme.
package main

import (
	"errors"
	"flag"
	"fmt"
	"html"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxBytes is the largest picture that a README should load.
const maxBytes = 100_000

func main() {
	command := flag.String("command", "", "the command line that printed the session")
	title := flag.String("title", "", "description of the picture for readers who do not see it")
	flag.Parse()
	err := run(os.Stdin, os.Stdout, *command, *title)
	if err != nil {
		fmt.Fprintln(os.Stderr, "session:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer, command, title string) error {
	recorded, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(recorded)) == "" {
		return errors.New("nothing was recorded")
	}
	picture := draw(parse("\x1b[1m$ "+command+"\x1b[0m\n\n"+clean(string(recorded))), title)
	if len(picture) > maxBytes {
		return fmt.Errorf("the picture has %d bytes, at most %d", len(picture), maxBytes)
	}
	_, err = io.WriteString(out, picture)
	return err
}

// localVersion is the part of a kernel's release that only its builder knows.
var localVersion = regexp.MustCompile(`(Linux \d+\.\d+\.\d+)-[\w.-]+`)

// clean removes local versions of kernels, carriage returns and empty lines at the end.
func clean(text string) string {
	text = strings.ReplaceAll(localVersion.ReplaceAllString(text, "$1"), "\r", "")
	return strings.TrimRight(text, " \n") + "\n"
}

// chunk is text of one style at one place of the terminal.
type chunk struct {
	row, column int
	class       string // of the style sheet
	text        string
}

// control matches a control sequence of a terminal. Its last byte m sets the style.
var control = regexp.MustCompile("^\x1b\\[([0-9;?]*)([A-Za-z])")

// parse splits a session into chunks. Two or more spaces separate chunks, so that columns keep their places in any font.
func parse(text string) []chunk {
	var all []chunk
	c := chunk{}
	column := 0
	end := func() {
		if body := strings.TrimRight(c.text, " "); body != "" {
			c.text = body
			all = append(all, c)
		}
		c.text = ""
		c.column = column
	}
	for text != "" {
		if m := control.FindStringSubmatch(text); m != nil {
			text = text[len(m[0]):]
			end()
			if m[2] == "m" {
				c.class = class(c.class, m[1])
			}
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		switch {
		case r == '\n':
			end()
			column = 0
			c.row++
			c.column = 0
			continue
		case r == ' ' && (c.text == "" || strings.HasSuffix(c.text, " ")):
			column++
			end()
			continue
		}
		c.text += string(r)
		column++
	}
	end()
	return all
}

// class returns the class after the parameters of a control sequence m: colours 1 to 7, bold, faint.
func class(now, parameters string) string {
	for p := range strings.SplitSeq(parameters, ";") {
		n, err := strconv.Atoi(p)
		switch {
		case err != nil || n == 0:
			now = ""
		case n == 1:
			now += " bold"
		case n == 2:
			now += " faint"
		case n >= 31 && n <= 37:
			now += " c" + strconv.Itoa(n-30)
		case n >= 91 && n <= 97:
			now += " c" + strconv.Itoa(n-90)
		}
	}
	return now
}

// Sizes of the picture in pixels.
const (
	wide   = 7.8 // one column
	high   = 18.0
	margin = 16.0
)

const style = `svg { --ink: #1c2430; --dim: #5a6472; --paper: #f6f8fa; --c1: #b3122a; --c2: #17703d; --c3: #7a5200; ` +
	`--c4: #1f5fbf; --c5: #7a3fa0; --c6: #0f6b75; }
@media (prefers-color-scheme: dark) { svg { --ink: #dfe5ee; --dim: #98a3b3; --paper: #14181f; --c1: #ff7a88; ` +
	`--c2: #4fc787; --c3: #e0b050; --c4: #6fa8ff; --c5: #c99cf0; --c6: #5cc8d4; } }
rect { fill: var(--paper); }
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: var(--ink); ` +
	`white-space: pre; }
.bold { font-weight: 700; } .faint { fill: var(--dim); }
.c1 { fill: var(--c1); } .c2 { fill: var(--c2); } .c3 { fill: var(--c3); } .c4 { fill: var(--c4); }
.c5 { fill: var(--c5); } .c6 { fill: var(--c6); }
`

// draw returns the SVG document.
func draw(all []chunk, title string) string {
	columns := 0
	rows := 0
	for _, c := range all {
		columns = max(columns, c.column+utf8.RuneCountInString(c.text))
		rows = max(rows, c.row+1)
	}
	width := 2*margin + wide*float64(columns)
	height := 2*margin + high*float64(rows)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" `+
		`aria-labelledby="title"><title id="title">%s</title><style>%s</style>`+"\n"+`<rect width="100%%" height="100%%" rx="6"/>`+
		"\n", width, height, width, height, html.EscapeString(title), style)
	for _, c := range all {
		attribute := ""
		if name := strings.TrimSpace(c.class); name != "" {
			attribute = ` class="` + name + `"`
		}
		fmt.Fprintf(&b, `<text x="%.1f" y="%.0f" textLength="%.1f"%s>%s</text>`+"\n", margin+wide*float64(c.column),
			margin+high*float64(c.row)+13, wide*float64(utf8.RuneCountInString(c.text)), attribute, html.EscapeString(c.text))
	}
	b.WriteString("</svg>\n")
	return b.String()
}
