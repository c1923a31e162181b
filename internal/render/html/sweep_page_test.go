package html

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/sweep"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestSweepPage_IsSelfContained checks that the page has no scripts and no external resources, that its SVG is
// complete with every kind of cell, and that measured cells differ from predicted ones.
func TestSweepPage_IsSelfContained(t *testing.T) {
	doc := sweptDocument(record.Header{Version: "devel"})
	doc.Peer = `<script>alert("x")</script>`
	var out bytes.Buffer
	must.Do(t, Write(&out, doc))
	page := out.String()
	for _, outside := range []string{"http://", "https://", "src=", "@import", "url(", "<script"} {
		if strings.Contains(page, outside) {
			t.Errorf("the page has %q", outside)
		}
	}
	drawings := regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(page, -1)
	if len(drawings) != 3 {
		t.Fatalf("%d drawings, want a heat map and two sets of curves", len(drawings))
	}
	for _, drawing := range drawings {
		for dec := xml.NewDecoder(strings.NewReader(drawing)); ; {
			if _, err := dec.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if strings.Contains(drawing, "NaN") || strings.Contains(drawing, "Inf") {
			t.Errorf("a number that is none: %s", drawing)
		}
	}
	for sign, n := range map[string]int{`class="bar"`: 6, `label toned send-buffer predicted`: 1, `class="cut"`: 1,
		`class="ring"`: 1, `>n/a<`: 1, `>failed<`: 1, `class="bdp"`: 2, `class="knee"`: 1, `~10.9`: 2} {
		if got := strings.Count(drawings[0], sign); got != n {
			t.Errorf("%d of %s in the heat map, want %d", got, sign, n)
		}
	}
	if got := strings.Count(page, `class="open"`); got != 2 {
		t.Errorf("%d open circles, want one in each set of curves", got)
	}
}

// TestSweepPageIsAsSeen compares the page that e2e opens in a browser with its golden file.
func TestSweepPageIsAsSeen(t *testing.T) {
	var out bytes.Buffer
	must.Do(t, Write(&out, sweptDocument(record.Header{Version: "devel"})))
	golden(t, "testdata/sweep.html", out.Bytes())
}

// TestSweepPageOfEveryShape draws grids of one row, one column, one cell, automatic only,
// several planes, and one plane without measurements.
func TestSweepPageOfEveryShape(t *testing.T) {
	for _, axes := range []sweep.Axes{
		{Send: []int{8192}, Receive: []int{0}, Write: []int{0}},
		{Send: []int{0}, Receive: []int{0}, Write: []int{0}},
		{Send: []int{8192, 16384}, Receive: []int{0}, Write: []int{0}},
		{Send: []int{0}, Receive: []int{8192, 16384, 0}, Write: []int{0}},
		{Send: []int{8192, 0}, Receive: []int{65536}, Write: []int{1024, 4096}},
		{Send: []int{8192, 0}, Receive: []int{65536, 131072}, Write: []int{1024, 4096}},
	} {
		axes.Directions, axes.Congestion = []transfer.Direction{transfer.Up, transfer.Down}, []string{"", "bbr"}
		for _, measured := range []bool{true, false} {
			doc := swept()
			doc.Axes, doc.Cells = axes.Record(), nil
			if !measured {
				doc.Paths = nil
			}
			for _, setup := range axes.Cells() {
				c := record.SweepCell{SweepSetup: setup}
				if measured {
					c = swept().Cells[1]
					c.SweepSetup = setup
				}
				doc.Cells = append(doc.Cells, c)
			}
			report.Sweep(record.Header{}, doc)
			var out bytes.Buffer
			if err := Write(&out, doc); err != nil {
				t.Errorf("%+v: %v", axes, err)
			}
			if page := out.String(); strings.Contains(page, "NaN") || strings.Contains(page, "Inf") {
				t.Errorf("%+v: a number that is none", axes)
			}
			text.Sweep(io.Discard, doc)
		}
	}
}
