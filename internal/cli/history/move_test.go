package history

import (
	"io"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// TestEachDocument_ReadsNoMoreThanItKeeps: of a document that is too long no more is read than the longest
// that is kept; how long all of them together are does not matter.
func TestEachDocument_ReadsNoMoreThanItKeeps(t *testing.T) {
	const document = `{"schema":"fullpipe/measure/v1"}`
	third := document + strings.Repeat(" ", record.MostBytes/3)
	for _, tt := range []struct {
		name  string
		text  []io.Reader
		taken int // documents
		want  string
	}{
		{"many documents", []io.Reader{strings.NewReader(third), strings.NewReader(third), strings.NewReader(third),
			strings.NewReader(third)}, 4, ""},
		{"a document too long", []io.Reader{strings.NewReader(document + `{"peer":"`), endless('x')}, 1,
			"document 2: longer than 64 MiB"},
		{"space without end", []io.Reader{strings.NewReader(document), endless(' ')}, 1, "document 2: longer than 64 MiB"},
	} {
		taken := 0
		in := &countingReader{in: io.MultiReader(tt.text...)}
		err := eachDocument(in, func(_, _ []byte) error { taken++; return nil }, func(error) error { taken++; return nil })
		if taken != tt.taken || (err == nil) != (tt.want == "") || err != nil && err.Error() != tt.want {
			t.Errorf("%s: %d documents, %v", tt.name, taken, err)
		}
		if tt.want != "" && in.n > record.MostBytes+1<<20 {
			t.Errorf("%s: %d bytes were read", tt.name, in.n)
		}
	}
}

// endless is one byte again and again.
type endless byte

func (e endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

type countingReader struct {
	in io.Reader
	n  int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}
