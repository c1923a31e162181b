package render_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestSchemas_MatchDocuments compares docs/schema with the documents' types, and stored
// documents with docs/schema. go test ./internal/render -update writes it.
func TestSchemas_MatchDocuments(t *testing.T) {
	const dir = "../../docs/schema"
	for kind := range record.Kinds() {
		got := must.Get(json.MarshalIndent(record.Schema(kind), "", "  "))(t)
		got = append(got, '\n')
		path := filepath.Join(dir, kind+".json")
		if *update {
			must.Do(t, os.WriteFile(path, got, 0o644))
		}
		want := must.Get(os.ReadFile(path))(t)
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what %s documents hold (-update writes it)", path, kind)
		}
	}
	for file, archive := range stored(t) {
		kind := strings.TrimSuffix(filepath.Base(file), ".txtar")
		if record.Kinds()[kind] == nil { // another one of a kind
			kind, _, _ = strings.Cut(kind, "-")
		}
		text := must.Get(os.ReadFile(filepath.Join(dir, kind+".json")))(t)
		var schema map[string]any
		must.Do(t, json.Unmarshal(text, &schema))
		doc := must.Get(record.Decode(part(archive, "record.json"), nil))(t)
		encoded := must.Get(record.Encode(doc))(t)
		var tree any
		must.Do(t, json.Unmarshal(encoded, &tree))
		v := validator{root: schema}
		if v.check("", schema, tree); len(v.wrong) > 0 {
			t.Errorf("%s against %s: %s", file, kind, strings.Join(v.wrong, "; "))
		}
	}
}

// validator knows as much of JSON Schema as the documents' schemas use.
type validator struct {
	root  map[string]any
	wrong []string
}

func (v *validator) errorf(at, format string, args ...any) {
	v.wrong = append(v.wrong, at+": "+fmt.Sprintf(format, args...))
}

func (v *validator) check(at string, schema map[string]any, is any) {
	if ref, ok := schema["$ref"].(string); ok {
		schema = v.root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	if choices, ok := schema["anyOf"].([]any); ok {
		if is == nil {
			return
		}
		schema = choices[0].(map[string]any)
		v.check(at, schema, is)
		return
	}
	if constant, ok := schema["const"]; ok && constant != is {
		v.errorf(at, "%v, not %v", is, constant)
		return
	}
	switch want := schema["type"]; is := is.(type) {
	case map[string]any:
		if want != "object" {
			v.errorf(at, "an object, not %v", want)
			return
		}
		v.object(at, schema, is)
	case []any:
		items, ok := schema["items"].(map[string]any)
		if want != "array" || !ok {
			v.errorf(at, "a list, not %v", want)
			return
		}
		for i, one := range is {
			v.check(fmt.Sprintf("%s/%d", at, i), items, one)
		}
	case float64:
		if want != "number" && (want != "integer" || is != math.Trunc(is)) {
			v.errorf(at, "%v, not %v", is, want)
		}
	case string:
		if want != "string" && schema["const"] == nil {
			v.errorf(at, "a text, not %v", want)
		}
	case bool:
		if want != "boolean" {
			v.errorf(at, "a boolean, not %v", want)
		}
	case nil:
		v.errorf(at, "null")
	}
}

func (v *validator) object(at string, schema map[string]any, is map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	rest, _ := schema["additionalProperties"].(map[string]any)
	if required, ok := schema["required"].([]any); ok {
		for _, key := range required {
			if _, there := is[key.(string)]; !there {
				v.errorf(at, "%v is missing", key)
			}
		}
	}
	for key, one := range is {
		switch below, known := properties[key].(map[string]any); {
		case known:
			v.check(at+"/"+key, below, one)
		case rest != nil:
			v.check(at+"/"+key, rest, one)
		default:
			v.errorf(at, "%s is not in the schema", key)
		}
	}
}
