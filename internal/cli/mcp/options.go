package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The options of a tool are a struct. Each field is a parameter; its tags are
//
//	json  the name; without omitempty it is required
//	flag  the command's flag that takes the value; with unit, that is added to a number
//	enum  the possible values, separated by commas
//	min, max, default  of a number
//
// Method describe has the description of each. The kinds are string, bool, int and float64. A parameter that is not
// given is the zero value.

// described is an options struct.
type described interface{ describe() map[string]string }

// maxText is the number of characters of a string parameter.
const maxText = 255

// parameter is a field of an options struct.
type parameter struct {
	reflect.StructField
	name     string
	required bool
}

func parameters(t reflect.Type) (all []parameter) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		all = append(all, parameter{f, name, options != "omitempty"})
	}
	return all
}

// number returns the number of a tag.
func (p parameter) number(tag string) (float64, bool) {
	v, err := strconv.ParseFloat(p.Tag.Get(tag), 64)
	return v, err == nil
}

// inputSchema returns the JSON Schema of an options struct.
func inputSchema[O described]() map[string]any {
	var o O
	descriptions := o.describe()
	properties := map[string]any{}
	required := []string{}
	for _, p := range parameters(reflect.TypeFor[O]()) {
		one := map[string]any{"description": descriptions[p.name]}
		switch p.Type.Kind() {
		case reflect.String:
			one["type"] = "string"
			if values := p.Tag.Get("enum"); values != "" {
				one["enum"] = strings.Split(values, ",")
			} else {
				one["maxLength"] = maxText
			}
		case reflect.Bool:
			one["type"] = "boolean"
		case reflect.Int:
			one["type"] = "integer"
		default:
			one["type"] = "number"
		}
		for tag, key := range map[string]string{"min": "minimum", "max": "maximum", "default": "default"} {
			if v, has := p.number(tag); has {
				one[key] = v
			}
		}
		properties[p.name] = one
		if p.required {
			required = append(required, p.name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// decodeOptions fills an options struct, options points to it, from a call's arguments. The error's text is for the
// assistant and may quote the arguments.
func decodeOptions(arguments json.RawMessage, options any) error {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.DisallowUnknownFields()
	if err := d.Decode(options); err != nil {
		return fmt.Errorf("the arguments do not fit the schema: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the arguments are more than one object")
	}
	v := reflect.ValueOf(options).Elem()
	for _, p := range parameters(v.Type()) {
		if err := p.check(v.FieldByIndex(p.Index)); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// check compares a value with its tags.
func (p parameter) check(v reflect.Value) error {
	if v.IsZero() {
		if p.required {
			return errors.New("is required")
		}
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		return p.checkText(v.String())
	case reflect.Int:
		return p.checkNumber(float64(v.Int()))
	case reflect.Float64:
		return p.checkNumber(v.Float())
	}
	return nil
}

func (p parameter) checkText(text string) error {
	values := p.Tag.Get("enum")
	switch {
	case utf8.RuneCountInString(text) > maxText:
		return fmt.Errorf("has more than %d characters", maxText)
	case strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("has a control character")
	case values != "" && !slices.Contains(strings.Split(values, ","), text):
		return fmt.Errorf("is none of %s", values)
	}
	return nil
}

func (p parameter) checkNumber(n float64) error {
	least, hasMin := p.number("min")
	most, hasMax := p.number("max")
	if hasMin && n < least || hasMax && n > most {
		return fmt.Errorf("%v is not between %v and %v", n, least, most)
	}
	return nil
}

// flagsOf returns the flags of the parameters that were given, each as one argument, so that no value can be another
// flag.
func flagsOf(options any) (flags []string) {
	v := reflect.ValueOf(options).Elem()
	for _, p := range parameters(v.Type()) {
		value := v.FieldByIndex(p.Index)
		name := p.Tag.Get("flag")
		if name == "" || value.IsZero() {
			continue
		}
		text := fmt.Sprint(value.Interface())
		if value.Kind() == reflect.Float64 {
			text = strconv.FormatFloat(value.Float(), 'f', -1, 64)
		}
		flags = append(flags, "--"+name+"="+text+p.Tag.Get("unit"))
	}
	return flags
}
