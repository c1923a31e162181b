// Package must ends a test at an error of its preparation.
package must

import "testing"

// Get returns a function that returns v, and ends the test if err is not nil:
//
//	file := must.Get(os.Open(name))(t)
func Get[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
		return v
	}
}

// Do ends the test if err is not nil.
func Do(t testing.TB, err error) {
	if err != nil {
		t.Helper()
		t.Fatal(err)
	}
}
