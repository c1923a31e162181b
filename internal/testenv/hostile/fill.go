package hostile

import (
	"reflect"
	"time"
)

// maxDepth bounds values whose types contain themselves.
const maxDepth = 12

// Fill sets every exported text of the value behind a pointer to text, and makes pointers, lists and maps with elements
// to hold some. Numbers are 2 or 0.5, booleans true.
func Fill(pointer any, text string) { fill(reflect.ValueOf(pointer).Elem(), text, 0) }

func fill(v reflect.Value, text string, depth int) {
	if depth > maxDepth || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(2)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(2)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text, depth+1)
	case reflect.Slice:
		const elements = 3 // charts need as many points
		v.Set(reflect.MakeSlice(v.Type(), elements, elements))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), text, depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key := reflect.New(v.Type().Key()).Elem()
		value := reflect.New(v.Type().Elem()).Elem()
		fill(key, text, depth+1)
		fill(value, text, depth+1)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1e9, 0)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), text, depth+1)
		}
	}
}
