package present

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// A document that is large enough to be interrupted is given up, not shown in part.
func TestDecodeIsGivenUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	large := []byte(`{"schema":"fullpipe/measure/v1","peer":"` + strings.Repeat("a", 1<<20) + `"}`)
	if doc, err := decode(ctx, large, nil); doc != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v", doc, err)
	}
}
