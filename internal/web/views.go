package web

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/html"
	"github.com/fullpipe-net/fullpipe/internal/render/svg"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// gridView is the page of all paths.
type gridView struct {
	Rows     []gridRow
	More     int // the offset of the next page; 0 is none
	Limiters []string
}

type gridRow struct {
	Path      record.KeptPath
	Kind      string // what measured it; where the far end and that are another row's too, with its key
	Direction string
	Newest    *record.KeptPoint
	First     bool // of its path
}

func (s *Server) grid(r *http.Request) (*gridView, error) {
	doc, kinds, err := s.pathsAndKinds(r)
	if err != nil {
		return nil, err
	}
	v := &gridView{}
	seen := map[string]bool{}
	named := map[string]int{}
	for i, p := range doc.Paths {
		named[p.Far+" "+kinds[i]]++
	}
	for i, p := range doc.Paths {
		kind := kinds[i]
		if named[p.Far+" "+kind] > 1 {
			kind += " " + p.PathKey[:min(len(p.PathKey), 6)]
		}
		if len(p.Directions) == 0 {
			v.Rows = append(v.Rows, gridRow{Path: p, Kind: kind, First: true})
		}
		for i, d := range p.Directions {
			row := gridRow{Path: p, Kind: kind, Direction: d.Direction, First: i == 0}
			row.Path.Directions = []record.KeptDirection{d}
			if n := len(d.Results); n > 0 {
				row.Newest = &d.Results[n-1]
			}
			for _, one := range d.Results {
				if one.Limiter != "" && !seen[one.Limiter] {
					seen[one.Limiter] = true
					v.Limiters = append(v.Limiters, one.Limiter)
				}
			}
			v.Rows = append(v.Rows, row)
		}
	}
	slices.Sort(v.Limiters)
	if len(doc.Paths) == pathsAtOnce {
		offset, _ := number(r.URL.Query(), "offset", 0, 1<<30) // paths has read it
		v.More = offset + pathsAtOnce
	}
	return v, nil
}

// seriesView is the page of one path.
type seriesView struct {
	Path       store.Series
	Kind       string
	Directions []seriesDirection
	Span       string // of the spans that can be chosen
	Older      string // the query of what is older; "" is none
	Data       string // the query of the API for the same runs
	Retest     *retestView
}

// retestView is what an operator's page of a path says of testing it.
type retestView struct {
	Why string // it cannot be tested
	// Other and Now are the test that runs, of another path or of this one.
	Other, Now *record.PageTest
	Last       *record.PageTest // of this path, which did not end with a result
}

func (s *Server) retestView(r *http.Request, p store.Series) *retestView {
	if visitorOf(r.Context()).role < Operator {
		return nil
	}
	now := s.retests.now()
	v := &retestView{}
	switch ours := now.PathKey == p.Path; {
	case now.State == record.TestRuns && ours:
		v.Now = &now
		return v
	case now.State == record.TestRuns:
		v.Other = &now
		return v
	case ours && now.State != record.TestIsDone:
		v.Last = &now
	}
	v.Why = s.mayTest(r, p)
	return v
}

type seriesDirection struct {
	Direction string
	Points    []record.KeptPoint // the oldest first
	Newest    []record.KeptPoint // the newest first, as the table has them
	Changes   []record.PathChange
}

// spans are how far back a path's page looks; what came before counts for what is usual.
var spans = map[string]time.Duration{"day": 24 * time.Hour, "week": 7 * 24 * time.Hour, "month": 30 * 24 * time.Hour}

// runsOfSpan are the most results of a span: those of a month in which recheck measured each half
// hour, the most that it does.
const runsOfSpan = 1500

// rowsShown is how many results the table of a path's page has.
const rowsShown = 100

func (s *Server) series(r *http.Request) (*seriesView, error) {
	q := r.URL.Query()
	page, err := pageOf(q)
	if err != nil {
		return nil, err
	}
	v := &seriesView{Span: "all"}
	if v.Path, err = s.cfg.History.Path(r.Context(), r.PathValue("key")); err != nil {
		return nil, err
	}
	if back, known := spans[q.Get("span")]; known { // before the newest: a path that rests is shown all the same
		v.Span = q.Get("span")
		page.Since = v.Path.Newest.Add(-back)
		page.Limit = runsOfSpan
	}
	v.Retest = s.retestView(r, v.Path)
	runs, err := s.cfg.History.Of(r.Context(), v.Path.Path, page)
	if err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		return v, nil
	}
	v.Kind = runs[len(runs)-1].Kind
	before, err := s.cfg.History.Of(r.Context(), v.Path.Path, store.Page{Before: runs[0].StartedAt, Limit: 60})
	if err != nil {
		return nil, err
	}
	query := url.Values{"since": {runs[0].StartedAt.Format(time.RFC3339Nano)}, "limit": {fmt.Sprint(len(runs))}}
	if !page.Before.IsZero() {
		query.Set("before", page.Before.Format(time.RFC3339Nano))
	}
	v.Data = query.Encode()
	if len(before) > 0 && len(runs) == page.Limit {
		v.Older = url.Values{"before": {runs[0].StartedAt.Format(time.RFC3339Nano)}}.Encode()
	}
	shown := short(runs)
	changes := report.Changes(record.Header{}, append(short(before), shown...)).Changes
	for _, d := range report.Standings(append(short(before), shown...), 1<<30) {
		one := seriesDirection{Direction: d.Direction}
		for _, p := range d.Results {
			if !p.StartedAt.Before(runs[0].StartedAt) {
				one.Points = append(one.Points, p)
			}
		}
		for _, c := range changes {
			if c.Direction == d.Direction && !c.At.Before(runs[0].StartedAt) {
				one.Changes = append(one.Changes, c)
			}
		}
		one.Newest = slices.Clone(one.Points[max(len(one.Points)-rowsShown, 0):])
		slices.Reverse(one.Newest)
		if len(one.Points) > 0 {
			v.Directions = append(v.Directions, one)
		}
	}
	return v, nil
}

// Picture draws the direction. It is made of what has been made harmless.
func (d seriesDirection) Picture() template.HTML { return svg.Series(d.Direction, d.Points, d.Changes) }

// Strip draws the row's newest results.
func (g gridRow) Strip() template.HTML {
	if len(g.Path.Directions) == 0 {
		return ""
	}
	return svg.Strip(g.Path.Directions[0].Results)
}

// runView is the page of one result.
type runView struct {
	ID, PathKey, Far string
	Labels           map[string]string
	Body             template.HTML
	Script           bool
}

func (s *Server) runPage(w http.ResponseWriter, r *http.Request) {
	doc, err := s.document(r, r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	v := runView{Far: render.Line(record.Summarize(doc).Far)}
	if e := doc.Head().Envelope; e != nil {
		v.Labels = render.Document(e.Labels)
		v.ID = e.ID
		v.PathKey = e.PathKey
	}
	if v.Body, _, err = html.Body(doc); err != nil {
		s.fail(w, r, err)
		return
	}
	_, v.Script = doc.(*record.Diagnose)
	s.render(w, r, http.StatusOK, "run", v)
}

// labelForm is the run's page's way to label it.
func (s *Server) labelForm(w http.ResponseWriter, r *http.Request) {
	r.SetPathValue("name", r.PostFormValue("name"))
	if _, err := s.label(r); err != nil {
		s.fail(w, r, err)
		return
	}
	http.Redirect(w, r, visitorOf(r.Context()).base+"/runs/"+url.PathEscape(r.PathValue("id")), http.StatusSeeOther)
}

// compareView is the page of two results beside each other.
type compareView struct {
	First, Second string
	Difference    *record.Difference
}

func (s *Server) comparePage(r *http.Request) (*compareView, error) {
	d, err := s.compare(r)
	if err != nil {
		return nil, err
	}
	return &compareView{d.First.ID, d.Second.ID, d}, nil
}

// runStyle serves the style of a result's page, which has its pictures' colours.
func (s *Server) runStyle(w http.ResponseWriter, r *http.Request) {
	doc, err := s.document(r, r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	_, style, err := html.Body(doc)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	_, _ = w.Write([]byte(style)) // who went away is not told
}

func runScript(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	_, _ = w.Write([]byte(html.Script())) // who went away is not told
}
