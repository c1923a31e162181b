package record

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Schema returns the JSON Schema (draft 2020-12) of one kind of document, derived from its Go type; nil for an unknown
// kind. It permits additional keys, because v1 may gain keys.
func Schema(kind string) map[string]any {
	doc := Kinds()[kind]
	if doc == nil {
		return nil
	}
	out := SchemaOf(doc)
	name, _, _ := strings.Cut(kind, "-")
	out["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	out["title"] = "fullpipe/" + name + "/v1"
	if kind == "failed" {
		out["title"] = "any command that fails without a result"
	} else {
		out["properties"].(map[string]any)["schema"] = map[string]any{"const": "fullpipe/" + name + "/v1"}
	}
	return out
}

// SchemaOf returns the JSON Schema of a document's type, without its name.
func SchemaOf(doc Document) map[string]any {
	g := &schemas{defs: map[string]any{}}
	out := g.object(reflect.TypeOf(doc).Elem())
	if len(g.defs) > 0 {
		out["$defs"] = g.defs
	}
	return out
}

// schemas collects the definitions of the types in a document.
type schemas struct{ defs map[string]any }

func (g *schemas) of(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[units.Duration]():
		return map[string]any{"type": "number"}
	case t == reflect.TypeFor[NsTime]():
		return map[string]any{"type": "integer"}
	case t == reflect.TypeFor[RFC6349Statement](), t == reflect.TypeFor[verdict.Note]():
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return g.of(t.Elem())
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": g.of(t.Elem())}
	case reflect.Array:
		return map[string]any{"type": "array", "items": g.of(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": g.of(t.Elem())}
	case reflect.Struct:
		if t.Name() == "" {
			return g.object(t)
		}
		name := defName(t)
		if _, known := g.defs[name]; !known {
			g.defs[name] = map[string]any{} // for types that contain themselves
			g.defs[name] = g.object(t)
		}
		return map[string]any{"$ref": "#/$defs/" + name}
	}
	return map[string]any{"type": "integer"}
}

// defNames are the definition names of types whose Go names are ambiguous without their package.
var defNames = map[string]string{"record.Figure": "HistoryFigure",
	"predict.Range": "PredictRange", "predict.Times": "PredictTimes",
	"predict.Next": "PredictNext", "predict.Cap": "PredictCap", "plan.Route": "PlanRoute", "plan.Shared": "PlanShared",
	"plan.Direction": "PlanDirection"}

func defName(t reflect.Type) string { return cmp.Or(defNames[t.String()], t.Name()) }

func (g *schemas) object(t reflect.Type) map[string]any {
	properties := map[string]any{}
	required := []string{}
	g.fields(t, properties, &required)
	slices.Sort(required)
	out := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// fields adds a type's keys, including those of embedded types.
func (g *schemas) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		if f.Anonymous && name == "" {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
				var optional []string
				g.fields(inner, properties, &optional)
				continue
			}
			g.fields(inner, properties, required)
			continue
		}
		if name == "" {
			name = f.Name
		}
		schema := g.of(f.Type)
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		if !optional {
			*required = append(*required, name)
			switch f.Type.Kind() {
			case reflect.Pointer, reflect.Slice, reflect.Map: // null when empty
				schema = map[string]any{"anyOf": []any{schema, map[string]any{"type": "null"}}}
			}
		}
		properties[name] = schema
	}
}
