package record

import "io"

// piece is how many bytes of a document are written at a time.
const piece = 64 << 10

// indent writes what json.Indent makes, by two spaces, of what json.Marshal wrote, and a new line: as that is
// valid and has no blanks, it need not be parsed again, which took as long as to write it.
func indent(w io.Writer, compact []byte) error {
	out := make([]byte, 0, min(2*len(compact)+1024, piece))
	depth := 0
	line := func() {
		out = append(out, '\n')
		for range depth {
			out = append(out, "  "...)
		}
	}
	for i := 0; i < len(compact); i++ {
		if len(out) > piece-1024 {
			if _, err := w.Write(out); err != nil {
				return err
			}
			out = out[:0]
		}
		switch c := compact[i]; c {
		case '"':
			from := i
			for i++; compact[i] != '"'; i++ {
				if compact[i] == '\\' {
					i++
				}
			}
			out = append(out, compact[from:i+1]...)
		case '{', '[':
			out = append(out, c)
			if next := compact[i+1]; next == '}' || next == ']' {
				out = append(out, next)
				i = i + 1
				continue
			}
			depth++
			line()
		case '}', ']':
			depth--
			line()
			out = append(out, c)
		case ',':
			out = append(out, c)
			line()
		case ':':
			out = append(out, ": "...)
		default:
			out = append(out, c)
		}
	}
	_, err := w.Write(append(out, '\n'))
	return err
}
