package html

import (
	"bytes"
	"fmt"
	"regexp"

	"github.com/a-h/templ"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// styled are the style attributes of our pictures: their cells' colours and sizes. In text
// from elsewhere quotes are escaped.
var styled = regexp.MustCompile(` style="([-a-z0-9:;#.% ]*)"`)

// Body returns the body of a document's page without scripts, and its style sheet in addition to BaseStyle, for an
// enclosing page that allows nothing inline. Script lets the pictures of captures be zoomed.
func Body(doc record.Document) (body templ.Component, style string, err error) {
	p, err := pageOf(render.Document(doc))
	if err != nil {
		return nil, "", err
	}
	var inside bytes.Buffer
	if err := written(&inside, p.body); err != nil {
		return nil, "", err
	}
	style = p.style
	tones := map[string]int{}
	toned := styled.ReplaceAllStringFunc(inside.String(), func(attribute string) string {
		value := styled.FindStringSubmatch(attribute)[1]
		n, known := tones[value]
		if !known {
			n = len(tones)
			tones[value] = n
			style += fmt.Sprintf("[data-tone=\"%d\"] { %s }\n", n, value)
		}
		return fmt.Sprintf(` data-tone="%d"`, n)
	})
	return templ.Raw(toned), style, nil // written by the components of this package
}
