package html

import (
	"bytes"
	"fmt"
	"html/template"
	"regexp"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// styled are the style attributes of our pictures: their cells' colours and sizes. In text
// from elsewhere quotes are escaped.
var styled = regexp.MustCompile(` style="([-a-z0-9:;#.% ]*)"`)

// Body returns the body of a document's page without scripts, and its style sheet in addition to BaseStyle, for an
// enclosing page that allows nothing inline. Script lets the pictures of captures be zoomed.
func Body(doc record.Document) (body template.HTML, style string, err error) {
	var page bytes.Buffer
	if err := Write(&page, doc); err != nil {
		return "", "", err
	}
	_, inside, found := strings.Cut(page.String(), "<body>") // our own markup: foreign text is escaped
	inside, _, ended := strings.Cut(inside, "</body>")
	if !found || !ended {
		return "", "", fmt.Errorf("a page of %s without a body", doc.Head().Schema)
	}
	inside, _, _ = strings.Cut(inside, "<script>")
	switch doc.(type) {
	case *record.Diagnose:
		style = diagnoseStyle
	case *record.RFC6349:
		style = rfc6349Style
	case *record.Sweep:
		style = sweepStyle
	case *record.Tune:
		style = tuneStyle
	case *record.Measure:
		style = plainStyle + measureStyle
	default:
		style = plainStyle
	}
	tones := map[string]int{}
	inside = styled.ReplaceAllStringFunc(inside, func(attribute string) string {
		value := styled.FindStringSubmatch(attribute)[1]
		n, known := tones[value]
		if !known {
			n = len(tones)
			tones[value] = n
			style += fmt.Sprintf("[data-tone=\"%d\"] { %s }\n", n, value)
		}
		return fmt.Sprintf(` data-tone="%d"`, n)
	})
	return template.HTML(inside), style, nil // the page's own, made by html/template
}

// Script lets the pictures of captured connections be zoomed and read.
func Script() string { return diagnoseScript }
