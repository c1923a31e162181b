package record

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzIndented compares indented with json.Indent on output of json.Marshal.
func FuzzIndented(f *testing.F) {
	for _, text := range []string{`{}`, `[]`, `[[],{}]`, `{"a":[1,-2.5e3,null],"b":{"c":"x\"y\\"},"d":"{[:,]}"}`,
		`"\\"`, `"<&>\u2028é"`, `3`, `{"":""}`, `[true,"",false]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var value any
		if json.Unmarshal(text, &value) != nil {
			return
		}
		compact, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		if err := json.Indent(&want, compact, "", "  "); err != nil {
			t.Fatal(err)
		}
		if got := indented(compact); !bytes.Equal(got, want.Bytes()) {
			t.Errorf("%s: %s, json.Indent has %s", compact, got, want.Bytes())
		}
	})
}
