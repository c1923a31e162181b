package web

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

var update = flag.Bool("update", false, "write openapi.json")

// described is the description of a route in openapi.json.
type described struct {
	summary    string
	document   record.Document // the response; nil: text has its media type
	text       string
	parameters []string // of the query or a form: name|type|description
	call       string   // request of the test, with placeholders ID and KEY
}

var routes = map[string]described{
	"GET /api/v1/paths": {summary: "the paths with their newest results, the most recently measured path first",
		document: &record.Paths{}, parameters: []string{"offset|integer|number of paths to skip", "limit|integer|at most 50"},
		call: "/api/v1/paths?limit=10"},
	"GET /api/v1/paths/{key}/runs": {summary: "the newest results of a path, the oldest of them first",
		document: &record.History{}, parameters: span, call: "/api/v1/paths/KEY/runs?limit=40"},
	"GET /api/v1/paths/{key}/changes": {summary: "the changes of level and limiter in those results",
		document: &record.Changes{}, parameters: span, call: "/api/v1/paths/KEY/changes"},
	"GET /api/v1/runs/{id}": {summary: "a result's document as stored; docs/schema lists the keys of each kind",
		text: "application/json", call: "/api/v1/runs/ID"},
	"GET /api/v1/runs/{id}/samples": {summary: "a result's samples as they were stored", text: "application/json",
		call: "/api/v1/runs/ID/samples"},
	"PUT /api/v1/runs/{id}/labels/{name}": {summary: "set a label of a result; operators only",
		document: &record.History{}, parameters: []string{"value|string|at most 256 bytes"},
		call: "/api/v1/runs/ID/labels/site?value=Bern"},
	"DELETE /api/v1/runs/{id}/labels/{name}": {summary: "remove a label; operators only", document: &record.History{},
		call: "/api/v1/runs/ID/labels/site"},
	"POST /api/v1/paths/{key}/accept": {summary: "accept what limits a path, as its newest result is, until it changes; " +
		"returns that result; operators only", document: &record.History{}, call: "/api/v1/paths/KEY/accept"},
	"POST /api/v1/paths/{key}/retest": {summary: "test a path as its results were measured, one at a time; operators only",
		document: &record.PageTest{}, call: "/api/v1/paths/KEY/retest"},
	"GET /api/v1/retest": {summary: "the progress of that test: a retest document for each change, as " +
		"server-sent events", text: "text/event-stream", call: "/api/v1/retest"},
	"DELETE /api/v1/retest": {summary: "stop the running test; operators only", document: &record.PageTest{},
		call: "/api/v1/retest"},
	"GET /api/v1/compare": {summary: "compare two results", document: &record.Difference{},
		parameters: []string{"first|string|the id of a result", "second|string|the id of another"},
		call:       "/api/v1/compare?first=ID&second=ID"},
	"GET /api/v1/live": {summary: "the connections of this host: " +
		"a watch document each period with words about each direction, as server-sent events",
		text: "text/event-stream", call: "/api/v1/live"},
	"GET /api/v1/openapi.json": {summary: "this description", text: "application/json", call: "/api/v1/openapi.json"},

	// Routes of a hub.
	"GET /api/v1/fleet/grid": {summary: "hub: the last run of each path; a row sends, a column receives",
		document: &FleetGrid{}, parameters: []string{"task|string|a task of the mesh file; default: the first"},
		call: "/api/v1/fleet/grid"},
	"GET /api/v1/fleet/live": {summary: "hub: the grid's new revision after each change, as server-sent events",
		text: "text/event-stream", call: "/api/v1/fleet/live"},
	"GET /api/v1/fleet/hosts": {summary: "hub: the hosts of the fleet", document: &FleetHosts{},
		call: "/api/v1/fleet/hosts"},
	"GET /api/v1/fleet/runs": {summary: "hub: due runs with their outcome, the newest first", document: &FleetRuns{},
		parameters: []string{"state|string|only runs in this state"}, call: "/api/v1/fleet/runs?state=done"},
	"GET /api/v1/fleet/events": {summary: "hub: changes of paths, the newest first", document: &FleetEvents{},
		call: "/api/v1/fleet/events"},
	"GET /api/v1/fleet/incidents": {summary: "hub: open incidents, and those of the last week",
		document: &FleetIncidents{}, call: "/api/v1/fleet/incidents"},
	"POST /api/v1/fleet/silences": {
		summary:  "hub: suppress reports of a host, site, link or path for a time; operators only",
		document: &FleetIncidents{}, parameters: []string{"kind|string|host, site, link or path",
			"name|string|its name; of a path two hosts: A B", "for|string|such as 8h, at most 2160h"},
		call: "/api/v1/fleet/silences?kind=host&name=host%3C0%3E&for=1h"},
	"DELETE /api/v1/fleet/silences/{id}": {summary: "hub: end a silence; operators only", document: &FleetIncidents{},
		call: "/api/v1/fleet/silences/x"},
	"GET /api/v1/fleet/mesh": {summary: "hub: the mesh file in use", document: &FleetMesh{}, call: "/api/v1/fleet/mesh"},
	"POST /api/v1/fleet/mesh": {summary: "hub: use the mesh file in the request's body; admins only",
		document: &FleetMesh{},
		call:     "/api/v1/fleet/mesh"},
	"POST /api/v1/fleet/test": {summary: "hub: test a path soon; operators only", document: &FleetRuns{},
		parameters: []string{"a|string|a host", "b|string|another host"},
		call:       "/api/v1/fleet/test?a=host%3C0%3E&b=host%3C1%3E"},
	"POST /api/v1/fleet/tokens": {summary: "hub: make a token that lets one host join; admins only",
		document: &FleetToken{}, call: "/api/v1/fleet/tokens"},
	"DELETE /api/v1/fleet/hosts/{name}": {summary: "hub: end a host's membership; admins only", document: &FleetHosts{},
		call: "/api/v1/fleet/hosts/host%3C2%3E"},
}

// documentName returns the name of a document's type.
func documentName(doc record.Document) string {
	_, name, _ := strings.Cut(fmt.Sprintf("%T", doc), ".")
	return name
}

var span = []string{"since|string|RFC 3339", "before|string|RFC 3339", "limit|integer|the newest results, at most 5000"}

// description returns the OpenAPI document of the routes.
func description(t *testing.T) map[string]any {
	schemas := map[string]any{}
	reference := func(doc record.Document) map[string]any {
		schema := record.SchemaOf(doc)
		name := documentName(doc)
		defs, _ := schema["$defs"].(map[string]any)
		delete(schema, "$defs")
		for _, one := range append(slices.Collect(maps.Keys(defs)), name) {
			is := any(schema)
			if one != name {
				is = defs[one]
			}
			text := must.Get(json.Marshal(is))(t)
			text = bytes.ReplaceAll(text, []byte("#/$defs/"), []byte("#/components/schemas/"))
			var moved any
			must.Do(t, json.Unmarshal(text, &moved))
			if before, err := json.Marshal(schemas[one]); schemas[one] != nil && (err != nil || !bytes.Equal(before, text)) {
				before, _ := json.Marshal(moved)
				if after, _ := json.Marshal(schemas[one]); !bytes.Equal(before, after) {
					t.Errorf("two types are named %s", one)
				}
			}
			schemas[one] = moved
		}
		return map[string]any{"$ref": "#/components/schemas/" + name}
	}
	failure := map[string]any{"description": "the error and its remedy",
		"content": map[string]any{"application/json": map[string]any{"schema": reference(&record.CommandFailed{})}}}
	all := map[string]map[string]any{}
	for pattern, d := range routes {
		method, path, _ := strings.Cut(pattern, " ")
		kind, schema := d.text, map[string]any{}
		if d.document != nil {
			kind, schema = "application/json", reference(d.document)
		}
		var parameters []any
		for _, m := range regexp.MustCompile(`{(\w+)}`).FindAllStringSubmatch(path, -1) {
			parameters = append(parameters, map[string]any{"name": m[1], "in": "path", "required": true,
				"schema": map[string]any{"type": "string"}})
		}
		for _, one := range d.parameters {
			parts := strings.Split(one, "|")
			parameters = append(parameters, map[string]any{"name": parts[0], "in": "query", "description": parts[2],
				"schema": map[string]any{"type": parts[1]}})
		}
		operation := map[string]any{"summary": d.summary, "responses": map[string]any{
			"200":     map[string]any{"description": "done", "content": map[string]any{kind: map[string]any{"schema": schema}}},
			"default": failure}}
		if parameters != nil {
			operation["parameters"] = parameters
		}
		if all[path] == nil {
			all[path] = map[string]any{}
		}
		all[path][strings.ToLower(method)] = operation
	}
	return map[string]any{"openapi": "3.1.0", "paths": all,
		"info": map[string]any{"title": "fullpipe ui", "version": "1",
			"description": "The results in the history and the connections that watch shows. Keys carry SI units; " +
				"an absent key means \"not known\". Keys may be added, and are never removed or changed within v1."},
		"security": []any{map[string]any{"bearer": []any{}}},
		"components": map[string]any{"schemas": schemas, "securitySchemes": map[string]any{
			"bearer": map[string]any{"type": "http", "scheme": "bearer"}}}}
}

// TestOpenAPI_MatchesServer compares openapi.json with the routes, the types of the documents and the responses.
func TestOpenAPI_MatchesServer(t *testing.T) {
	s, id, key := newTestServer(t, Config{Operator: "operator's token", Tests: &Tests{
		May: func(context.Context, store.Series) error { return nil },
		Run: func(context.Context, store.Series, func(TestNews)) error { return nil }}})
	hub := fleetSite(t, 3)
	var want []string
	for _, one := range append(s.routes(), hub.fleetRoutes()...) {
		if strings.Contains(one.pattern, " /api/v1/") {
			want = append(want, one.pattern)
		}
	}
	slices.Sort(want)
	got := slices.Sorted(maps.Keys(routes))
	if !slices.Equal(got, want) {
		t.Errorf("described: %v, served: %v", got, want)
	}
	text := must.Get(json.MarshalIndent(description(t), "", " "))(t)
	text = append(text, '\n')
	if *update {
		must.Do(t, os.WriteFile("openapi.json", text, 0o644))
		openapi = text
	}
	if !bytes.Equal(text, openapi) {
		t.Error("openapi.json differs from the routes: go test ./internal/web -run OpenAPI -update writes it")
	}
	var doc struct {
		Components struct{ Schemas map[string]any }
	}
	must.Do(t, json.Unmarshal(openapi, &doc))
	for _, pattern := range got {
		d := routes[pattern]
		if d.text == "text/event-stream" {
			continue // TestLive
		}
		method, _, _ := strings.Cut(pattern, " ")
		server := s
		token := "operator's token"
		call := strings.NewReplacer("ID", id, "KEY", key).Replace(d.call)
		if strings.Contains(pattern, "/fleet/") {
			server = hub
			token = fleetAdmin
			call = d.call
		}
		body := strings.NewReader("[task.t]\nbetween = [\"*\"]\nevery = \"1h\"\n")
		r := httptest.NewRequest(method, call, body)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d, %s", pattern, w.Code, w.Body)
			continue
		}
		var answer any
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Errorf("%s: %v", pattern, err)
		}
		if d.document != nil {
			name := documentName(d.document)
			checkKeys(t, pattern, doc.Components.Schemas, doc.Components.Schemas[name], answer)
		}
	}
}

// checkKeys checks that each key of a response is described and that no required key is missing.
func checkKeys(t *testing.T, at string, schemas map[string]any, schema, is any) {
	described, _ := schema.(map[string]any)
	if ref, ok := described["$ref"].(string); ok {
		described, _ = schemas[strings.TrimPrefix(ref, "#/components/schemas/")].(map[string]any)
	}
	if choices, ok := described["anyOf"].([]any); ok {
		described, _ = choices[0].(map[string]any)
	}
	switch is := is.(type) {
	case map[string]any:
		properties, _ := described["properties"].(map[string]any)
		for key, value := range is {
			inner := properties[key]
			if inner == nil {
				inner = described["additionalProperties"]
			}
			if inner == nil {
				t.Errorf("%s: the key %s is not described", at, key)
				continue
			}
			checkKeys(t, at+"."+key, schemas, inner, value)
		}
		required, _ := described["required"].([]any)
		for _, key := range required {
			if _, there := is[key.(string)]; !there {
				t.Errorf("%s: the key %s is missing", at, key)
			}
		}
	case []any:
		for _, one := range is {
			checkKeys(t, at+"[]", schemas, described["items"], one)
		}
	}
}
