package web

import "net/http"

// route is a pattern of http.ServeMux, the least role for it, and its handler.
type route struct {
	pattern string
	role    Role
	handler http.HandlerFunc
}

// routes returns all routes. Each pattern has a method, so that a viewer's route allows GET and HEAD only.
func (s *Server) routes() []route {
	all := []route{
		{"GET /static/", Nobody, staticFiles().ServeHTTP}, // the login page needs it; nothing in it is secret
		{"GET /{$}", Viewer, page(s, "grid", s.grid, gridPage)},
		{"GET /paths/{key}", Viewer, page(s, "series", s.series, seriesPage)},
		{"POST /paths/{key}/retest", Operator, s.testForm(s.beginTest)},
		{"POST /paths/{key}/retest/stop", Operator, s.testForm(s.stopTest)},
		{"POST /paths/{key}/accept", Operator, s.testForm(s.accept)},
		{"GET /runs/{id}", Viewer, s.runPage},
		{"GET /runs/{id}/style.css", Viewer, s.runStyle},
		{"POST /runs/{id}/label", Operator, s.labelForm},
		{"GET /compare", Viewer, page(s, "compare", s.compare, comparePage)},
		{"GET /live", Viewer, page(s, "live", func(*http.Request) (bool, error) { return s.cfg.Watch != nil, nil },
			livePage)},

		// openapi.json describes these.
		{"GET /api/v1/paths", Viewer, s.answer(func(r *http.Request) (any, error) { return s.paths(r) })},
		{"GET /api/v1/paths/{key}/runs", Viewer, s.answer(func(r *http.Request) (any, error) { return s.runs(r) })},
		{"GET /api/v1/paths/{key}/changes", Viewer, s.answer(func(r *http.Request) (any, error) { return s.changes(r) })},
		{"GET /api/v1/runs/{id}", Viewer, s.answer(s.run)},
		{"GET /api/v1/runs/{id}/samples", Viewer, s.answer(s.samples)},
		{"PUT /api/v1/runs/{id}/labels/{name}", Operator, s.answer(s.label)},
		{"DELETE /api/v1/runs/{id}/labels/{name}", Operator, s.answer(s.label)},
		{"GET /api/v1/compare", Viewer, s.answer(func(r *http.Request) (any, error) { return s.compare(r) })},
		{"POST /api/v1/paths/{key}/retest", Operator, s.answer(s.beginTest)},
		{"POST /api/v1/paths/{key}/accept", Operator, s.answer(s.accept)},
		{"GET /api/v1/retest", Viewer, s.streamTest},
		{"DELETE /api/v1/retest", Operator, s.answer(s.stopTest)},
		{"GET /api/v1/live", Viewer, func(w http.ResponseWriter, r *http.Request) { s.stream(s.live, w, r) }},
		{"GET /api/v1/openapi.json", Viewer, s.answer(func(*http.Request) (any, error) { return openapi, nil })},
	}
	all = append(all, s.fleetRoutes()...)
	if s.cfg.Speed != nil {
		show := func(w http.ResponseWriter, r *http.Request, name string, one pageFor) {
			s.render(w, r, http.StatusOK, name, one)
		}
		all = append(all, s.cfg.Speed.routes(show, s.refuse)...)
	}
	return all
}

// inside serves authenticated requests by role.
type inside struct {
	server *Server
	mux    *http.ServeMux
	roles  map[string]Role // by pattern
}

func newInside(s *Server) *inside {
	in := &inside{s, http.NewServeMux(), map[string]Role{}}
	for _, one := range s.routes() {
		in.roles[one.pattern] = one.role
		in.mux.HandleFunc(one.pattern, one.handler)
	}
	in.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, r, http.StatusNotFound, "no such page", "")
	})
	return in
}

// needs returns the least role for a request, and its route. Without a route the role is Viewer for GET and HEAD, and
// Operator for other methods.
func (in *inside) needs(r *http.Request) (role Role, route string) {
	_, pattern := in.mux.Handler(r)
	role, known := in.roles[pattern]
	switch {
	case known:
		return role, pattern
	case isReadOnly(r.Method):
		return Viewer, ""
	default:
		return Operator, ""
	}
}

// isReadOnly reports whether a method is read-only.
func isReadOnly(method string) bool { return method == http.MethodGet || method == http.MethodHead }

func (in *inside) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	role := visitorOf(r.Context()).role
	needed, route := in.needs(r)
	identify(r, visitorOf(r.Context()).account, route)
	switch {
	case role >= needed:
		if err := unknownParameter(r, route); err != nil {
			in.server.fail(w, r, err)
			return
		}
		in.mux.ServeHTTP(w, r)
	case role == Nobody:
		in.server.loginPage(w, r, http.StatusUnauthorized, "")
	default:
		in.server.refuse(w, r, http.StatusForbidden, "this needs "+needed.article(), "the token of "+needed.article())
	}
}
