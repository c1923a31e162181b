package web

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/a-h/templ"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/html"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// gridView is the data of the page of all paths.
type gridView struct {
	Rows     []gridRow
	More     int                 // offset of the next page; 0: none
	Sums     map[troubleKind]int // paths by their trouble
	Limiters []string
}

type gridRow struct {
	Path      record.KeptPath
	Kind      string // kind of the newest result; with the path's key if another row has the same far end and kind
	Direction string
	Newest    *record.KeptPoint
	First     bool // the path's first row
}

func (s *Server) grid(r *http.Request) (*gridView, error) {
	offset, err := number(r.URL.Query(), "offset", 0, 1<<30)
	if err != nil {
		return nil, err
	}
	all, err := s.cfg.History.Paths(r.Context(), 0, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	troubles, err := s.troubles.of(r.Context(), s.cfg.History, all)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b store.Series) int {
		return cmp.Compare(troubles[a.Path].rank(), troubles[b.Path].rank())
	})
	page := all[min(offset, len(all)):min(offset+maxPathsPerPage, len(all))]
	doc, kinds, err := s.standings(r.Context(), page)
	if err != nil {
		return nil, err
	}
	v := &gridView{Sums: map[troubleKind]int{}}
	for _, p := range all {
		v.Sums[troubles[p.Path].kind]++
	}
	if next := offset + maxPathsPerPage; next < len(all) {
		v.More = next
	}
	seen := map[string]bool{}
	named := map[string]int{}
	ends, err := s.endsOf(r.Context())
	if err != nil {
		return nil, err
	}
	for i := range doc.Paths {
		p := &doc.Paths[i]
		p.Far = ends(newestOf(p), p.Far)
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
	return v, nil
}

// seriesView is the data of one path's page.
type seriesView struct {
	Path       store.Series
	Kind       string
	Directions []seriesDirection
	Span       string // the selected key of spans, or "all"
	Older      string // query of the older results; "": none
	Data       string // the query of the API for the same runs
	Retest     *retestView
	Accept     string // names the trouble that an operator may accept; "": none
}

// retestView is the data of the test form on a path's page.
type retestView struct {
	Why string // reason why the path cannot be tested; "": it can
	// Other is the running test of another path, Now that of this path.
	Other, Now *record.PageTest
	Last       *record.PageTest // the last test of this path, if it ended without a result
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
	Newest    []record.KeptPoint // the newest first, for the table
	Changes   []record.PathChange
}

// spans are the periods of a path's page. Earlier results still count for the comparison with the past.
var spans = map[string]time.Duration{"day": 24 * time.Hour, "week": 7 * 24 * time.Hour, "month": 30 * 24 * time.Hour}

// runsOfSpan is the maximum number of results of a span: a month of recheck at its shortest interval of 30 minutes.
const runsOfSpan = 1500

// rowsShown is the number of results in the table of a path's page.
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
	if back, known := spans[q.Get("span")]; known { // relative to the newest result, so that old paths are shown too
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
	ends, err := s.endsOf(r.Context())
	if err != nil {
		return nil, err
	}
	v.Path.Far = ends(runs[len(runs)-1].ID, v.Path.Far)
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
	standings := report.Standings(append(short(before), shown...), 1<<30)
	if visitorOf(r.Context()).role >= Operator && page.Before.IsZero() {
		v.Accept = acceptText(troubleOf(standings, changes).kind)
	}
	for _, d := range standings {
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

// runView is the data of one result's page.
type runView struct {
	ID, PathKey, Far string
	At               time.Time
	Labels           map[string]string
	Unconfirmed      *unconfirmedView // nil: it is not
	Body             templ.Component
	Script           bool
}

func (s *Server) runPage(w http.ResponseWriter, r *http.Request) {
	doc, err := s.document(r, r.PathValue("id"))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	v := runView{Far: render.Line(record.Summarize(doc).Far), At: doc.Head().StartedAt}
	if e := doc.Head().Envelope; e != nil {
		v.Labels = render.Document(e.Labels)
		v.ID = e.ID
		v.PathKey = e.PathKey
	}
	ends, err := s.endsOf(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	v.Far = ends(v.ID, v.Far)
	v.Unconfirmed, err = s.unconfirmed(r.Context(), v.ID)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if v.Body, _, err = html.Body(doc); err != nil {
		s.fail(w, r, err)
		return
	}
	_, v.Script = doc.(*record.Diagnose)
	s.render(w, r, http.StatusOK, "run", func(visit view) templ.Component { return runPage(visit, v) })
}

// labelForm handles the form of a result's page that sets a label.
func (s *Server) labelForm(w http.ResponseWriter, r *http.Request) {
	r.SetPathValue("name", r.PostFormValue("name"))
	if _, err := s.label(r); err != nil {
		s.fail(w, r, err)
		return
	}
	http.Redirect(w, r, visitorOf(r.Context()).base+"/runs/"+url.PathEscape(r.PathValue("id")), http.StatusSeeOther)
}

// runStyle serves the style sheet of a result's page, which has the colours of its charts.
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
	_, _ = w.Write([]byte(style)) // an error means that the client has disconnected
}
