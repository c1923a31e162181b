package web

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Change is a request with an unsafe method.
type Change struct {
	At     time.Time
	By     string // the account; of a stranger, its address
	Action string // the method and the route, as in "POST /api/v1/fleet/mesh"
	Detail string // the path and its values, "" if the route says all
	Status int    // below 400: the change was made
}

// Refused reports whether the change was not made.
func (c Change) Refused() bool { return c.Status >= http.StatusBadRequest }

const (
	recordTime = 5 * time.Second // limits Config.Record
	maxDetail  = 500             // bytes of Change.Detail
)

// changeWriter records a request with an unsafe method before the client learns its end.
type changeWriter struct {
	http.ResponseWriter
	server  *Server
	request *http.Request // the innermost, with the parsed form
	by      string
	route   string
	once    sync.Once
}

type changeKey struct{}

// serveChange serves a request with an unsafe method. It is the only way to such a route.
func (s *Server) serveChange(w http.ResponseWriter, r *http.Request) {
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	c := &changeWriter{ResponseWriter: w, server: s, by: at.Addr().String(), route: r.Method}
	c.request = r.WithContext(context.WithValue(r.Context(), changeKey{}, c))
	s.guard(c, c.request)
	c.record(http.StatusOK) // of a handler that wrote nothing
}

// identify sets the account and the route of a change. Requests with other methods have no writer.
func identify(r *http.Request, owner account, route string) {
	c, is := r.Context().Value(changeKey{}).(*changeWriter)
	if !is {
		return
	}
	c.request = r
	if owner.name != "" {
		c.by = owner.name
	}
	if route != "" {
		c.route = route
	}
}

func (c *changeWriter) WriteHeader(status int) {
	c.record(status)
	c.ResponseWriter.WriteHeader(status)
}

func (c *changeWriter) Write(b []byte) (int, error) {
	c.record(http.StatusOK)
	return c.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (c *changeWriter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *changeWriter) record(status int) {
	c.once.Do(func() {
		change := Change{At: time.Now(), By: c.by, Action: c.route, Detail: c.detail(), Status: status}
		if change.Refused() {
			c.server.refusedChanges.Add(1)
		}
		if c.server.cfg.Record == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.request.Context()), recordTime)
		defer cancel()
		c.server.cfg.Record(ctx, change)
	})
}

// detail returns Change.Detail, without tokens and without the path of a session.
func (c *changeWriter) detail() string {
	values := c.request.Form // of a handler that has parsed it
	if values == nil {
		values = c.request.URL.Query()
	}
	shown := url.Values{}
	for name, of := range values {
		if name != "token" && name != "access_token" {
			shown[name] = of
		}
	}
	text := c.request.URL.Path
	if rest, is := strings.CutPrefix(text, "/s/"); is {
		_, rest, _ = strings.Cut(rest, "/")
		text = "/" + rest
	}
	switch {
	case len(shown) > 0:
		text += "?" + shown.Encode()
	case strings.HasSuffix(c.route, " "+text):
		return ""
	}
	return text[:min(len(text), maxDetail)]
}
