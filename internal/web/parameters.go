package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/fullpipe-net/fullpipe/internal/didyoumean"
)

// parameters returns the parameters of the API's routes by their pattern, as openapi.json has them.
var parameters = sync.OnceValue(func() map[string][]string {
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
		}
	}
	if err := json.Unmarshal(openapi, &doc); err != nil {
		panic(err) // impossible: a test reads it
	}
	all := map[string][]string{}
	for path, methods := range doc.Paths {
		for method, route := range methods {
			names := []string{}
			for _, p := range route.Parameters {
				if p.In == "query" {
					names = append(names, p.Name)
				}
			}
			all[strings.ToUpper(method)+" "+path] = names
		}
	}
	return all
})

// unknownParameter returns an error if a request to a route of the API has a parameter that the route does not know.
func unknownParameter(r *http.Request, pattern string) error {
	known, inAPI := parameters()[pattern]
	if !inAPI {
		return nil
	}
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return &requestError{http.StatusBadRequest, "the parameters cannot be read", ""}
	}
	if len(known) > 0 && !isReadOnly(r.Method) { // a form; another body is left alone
		if err := r.ParseForm(); err != nil {
			return &requestError{http.StatusBadRequest, "the form cannot be read", ""}
		}
		given = r.Form
	}
	for name := range given {
		if slices.Contains(known, name) {
			continue
		}
		hint := "this address has no parameters"
		if len(known) > 0 {
			hint = "its parameters: " + strings.Join(known, ", ")
		}
		if near := didyoumean.Nearest(name, known); near != "" {
			hint = near + "?"
		}
		return &requestError{http.StatusBadRequest, fmt.Sprintf("there is no parameter %.60q", name), hint}
	}
	return nil
}
