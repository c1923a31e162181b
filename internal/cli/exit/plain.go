package exit

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Plain returns an error's text for its user, without the names of Go functions and types that the standard library
// adds.
func Plain(err error) string {
	said := err.Error()
	var number *strconv.NumError
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	var path *fs.PathError
	var program *exec.Error
	switch {
	case errors.As(err, &program) && errors.Is(err, exec.ErrNotFound):
		return strings.Replace(said, program.Error(), program.Name+": "+noProgram, 1)
	case strings.Contains(said, exec.ErrNotFound.Error()): // reported by a lab's host
		return strings.Replace(said, exec.ErrNotFound.Error(), noProgram, 1)
	case errors.As(err, &path) && slices.Contains([]string{"open", "stat", "lstat", "read"}, path.Op):
		return strings.Replace(said, path.Error(), path.Path+": "+path.Err.Error(), 1)
	case errors.As(err, &number):
		return strings.Replace(said, number.Error(), plainNumber(number), 1)
	case errors.As(err, &kind):
		return strings.Replace(said, kind.Error(), plainType(kind), 1)
	case errors.As(err, &syntax) && strings.HasPrefix(syntax.Error(), "unexpected end"),
		errors.Is(err, io.ErrUnexpectedEOF):
		return strings.NewReplacer("unexpected end of JSON input", cutJSON, "unexpected EOF",
			"it ends too early").Replace(said)
	case errors.As(err, &syntax):
		return strings.Replace(said, syntax.Error(), fmt.Sprintf("no JSON at byte %d", syntax.Offset), 1)
	}
	return said
}

const (
	cutJSON   = "the JSON ends too early"
	noProgram = "there is no such program in $PATH"
)

func plainNumber(e *strconv.NumError) string {
	if errors.Is(e.Err, strconv.ErrRange) {
		return e.Num + " is larger than it can be"
	}
	return fmt.Sprintf("%q is not a number", e.Num)
}

// plainType names the key of an object with the wrong kind of value.
func plainType(e *json.UnmarshalTypeError) string {
	where := "the document"
	if e.Field != "" {
		where = strings.ToLower(strings.Trim(e.Field, "."))
	}
	return fmt.Sprintf("%s has %s instead of %s", where, article(jsonKind(e.Value)), article(goKind(e.Type)))
}

func article(noun string) string {
	if strings.ContainsAny(noun[:1], "aeio") {
		return "an " + noun
	}
	return "a " + noun
}

// jsonKind takes the words of encoding/json: "number 3", "array", "bool".
func jsonKind(value string) string {
	kind, _, _ := strings.Cut(value, " ")
	return cmp.Or(map[string]string{"array": "list", "string": "text", "bool": "truth value"}[kind], kind)
}

func goKind(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "text"
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		return "list"
	case reflect.Struct, reflect.Map, reflect.Pointer, reflect.Interface:
		return "object"
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "truth value"
	}
	return "number"
}

// PlainFlag describes the fault of a flag's value.
func PlainFlag(e *pflag.InvalidValueError) string {
	cause := e.Unwrap()
	var number *strconv.NumError
	switch kind := e.GetFlag().Value.Type(); {
	case errors.As(cause, &number) && kind == "bool":
		return fmt.Sprintf("%q is neither true nor false", e.GetValue())
	case errors.As(cause, &number) && errors.Is(number.Err, strconv.ErrRange) && kind == "uint16":
		return e.GetValue() + " is more than 65535"
	case errors.As(cause, &number) && strings.HasPrefix(kind, "u") && strings.HasPrefix(e.GetValue(), "-"):
		return e.GetValue() + " is below zero"
	case kind == "stringToString":
		return fmt.Sprintf("%q has no = in it", e.GetValue())
	default:
		return strings.TrimPrefix(Plain(cause), kind+" ") // as in: time "x": not a time
	}
}
