package mcp

import "strings"

// outlineDepth is the number of levels of objects whose keys an outline lists: the whole schemas are 40 kB, which an
// assistant reads before each conversation. They are in docs/schema.
const outlineDepth = 2

// late is a lab's own error: its keys are left out.
const late = "late"

// outline returns a document's JSON Schema without the keys of deeper objects. Every document that the schema accepts
// fits it.
func outline(schema map[string]any) map[string]any {
	defs, _ := schema["$defs"].(map[string]any)
	return outlined(schema, defs, outlineDepth)
}

func outlined(schema, defs map[string]any, depth int) map[string]any {
	if depth == 0 { // the name has the unit
		return map[string]any{}
	}
	if name, ok := schema["$ref"].(string); ok {
		target, _ := defs[strings.TrimPrefix(name, "#/$defs/")].(map[string]any)
		return outlined(target, defs, depth)
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		choices, ok := schema[key].([]any)
		if !ok {
			continue
		}
		if len(choices) != 2 { // only a value or null has an outline
			return map[string]any{}
		}
		first, _ := choices[0].(map[string]any)
		short := outlined(first, defs, depth)
		if kind, ok := short["type"].(string); ok {
			short["type"] = []any{kind, "null"}
		}
		delete(short, "enum")
		return short
	}
	short := map[string]any{}
	if kind, ok := schema["type"]; ok {
		short["type"] = kind
	}
	if items, ok := schema["items"].(map[string]any); ok {
		short["items"] = outlined(items, defs, depth)
	}
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return short
	}
	named := map[string]any{}
	for name, of := range properties {
		if one, ok := of.(map[string]any); ok && name != late {
			named[name] = outlined(one, defs, depth-1)
		} else {
			named[name] = map[string]any{}
		}
	}
	short["properties"] = named
	if depth < outlineDepth { // the protocol wants the whole document's type only
		delete(short, "type")
	}
	return short
}
