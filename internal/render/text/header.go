package text

import (
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Failure formats the failure as lines for a terminal.
func Failure(f record.Failure) string {
	text := f.Message
	if f.Argument != "" {
		text = f.Argument + ": " + text
	}
	if f.Try != "" {
		text += "\n  try: " + f.Try
	}
	return text
}
