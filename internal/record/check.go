package record

import (
	"errors"
	"fmt"
	"reflect"
)

// Limits of a document to decode. The number of objects is limited because an empty object of three characters takes
// hundreds of bytes of memory.
const (
	mostObjects = 400_000
	mostNumber  = 1e18 // bit/s, bytes, seconds: nothing real is larger
	mostCells   = 10_000
)

// checkSize limits the memory that decoding a text can take.
func checkSize(text []byte) error {
	if len(text) > MostBytes {
		return fmt.Errorf("more than %d MiB", MostBytes>>20)
	}
	objects := 0
	for _, c := range text {
		if c == '{' {
			objects++
		}
	}
	if objects > mostObjects {
		return fmt.Errorf("more than %d objects", mostObjects)
	}
	return nil
}

// check returns an error for a decoded document that renderers cannot rely on.
func check(doc Document) error {
	if err := checkNumbers(reflect.ValueOf(doc)); err != nil {
		return err
	}
	switch d := doc.(type) {
	case *Diagnose:
		for i := range d.Connections {
			c := &d.Connections[i]
			if len(c.Directions) == 0 {
				return fmt.Errorf("connections[%d]: no directions", i)
			}
			for j := range c.Directions {
				c.Directions[j].complete(c)
			}
		}
	case *Sweep:
		return d.checkGrid()
	}
	return nil
}

// complete adds the receiver of a direction to documents of versions that did not store it.
func (d *CapturedDirection) complete(c *CapturedConnection) {
	if d.To != "" {
		return
	}
	d.To = c.Server
	if d.From == c.Server {
		d.To = c.Client
	}
}

// checkGrid returns an error unless the cells are a grid small enough to draw.
func (s *Sweep) checkGrid() error {
	if len(s.Cells) > mostCells {
		return fmt.Errorf("more than %d cells", mostCells)
	}
	values := [5]map[any]bool{{}, {}, {}, {}, {}}
	for i := range s.Cells {
		c := &s.Cells[i]
		for k, v := range [5]any{c.Direction, c.Congestion, c.Send, c.Receive, c.Write} {
			values[k][v] = true
		}
	}
	places := 1
	for _, distinct := range values {
		places *= max(len(distinct), 1)
		if places > 2*mostCells {
			return errors.New("its cells are no grid")
		}
	}
	return nil
}

// checkNumbers returns an error for implausibly large numbers.
func checkNumbers(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return checkNumbers(v.Elem())
	case reflect.Struct:
		return checkFields(v)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := checkNumbers(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for i := v.MapRange(); i.Next(); {
			if err := checkNumbers(i.Value()); err != nil {
				return err
			}
		}
	}
	return checkNumber(v)
}

func checkFields(v reflect.Value) error {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		if err := checkNumbers(v.Field(i)); err != nil {
			return fmt.Errorf("%s: %w", field.Name, err)
		}
	}
	return nil
}

func checkNumber(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Float32, reflect.Float64:
		if f := v.Float(); !(f < mostNumber && f > -mostNumber) {
			return fmt.Errorf("%g is not believable", f)
		}
	case reflect.Int, reflect.Int64:
		if n := v.Int(); n > 4*mostNumber || n < -4*mostNumber {
			return fmt.Errorf("%d is not believable", n)
		}
	}
	return nil
}

// OrZero returns the value of a field, 0 if it is absent.
func OrZero[T int | int64 | float64](v *T) T {
	if v == nil {
		return 0
	}
	return *v
}
