package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// FuzzIndented compares indent with json.Indent on output of json.Marshal.
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
		compact := must.Get(json.Marshal(value))(t)
		var want bytes.Buffer
		must.Do(t, json.Indent(&want, compact, "", "  "))
		want.WriteByte('\n')
		var got bytes.Buffer
		if err := indent(&got, compact); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("%s: %s, %v, json.Indent has %s", compact, got.Bytes(), err, want.Bytes())
		}
	})
}

// TestIndent_Large checks a text that is written in many pieces.
func TestIndent_Large(t *testing.T) {
	one := map[string]any{"text": strings.Repeat("é\\\"", 50_000), "n": 1.5, "none": []int{}}
	compact := must.Get(json.Marshal(slices.Repeat([]any{one}, 20)))(t)
	var got, want bytes.Buffer
	must.Do(t, errors.Join(json.Indent(&want, compact, "", "  "), indent(&got, compact)))
	if want.WriteByte('\n'); !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("%d bytes differ from json.Indent's %d", got.Len(), want.Len())
	}
}
