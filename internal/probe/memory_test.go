package probe

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestElements(t *testing.T) {
	for text, want := range map[string]int{
		``: 0, `{}`: 0, `[]`: 0, `[ ]`: 0, `[1]`: 1, `[1,2]`: 2, `[null,null]`: 2, `["a,b","[\"]"]`: 2,
		`{"a":[1,{"b":[2,3]}],"c":"[1,2]"}`: 4,
		`[[[]]]`:                            2, `[[],[]]`: 2, `]]}}`: 0, `["\\",1]`: 2,
	} {
		if got := elements([]byte(text)); got != want {
			t.Errorf("%s: %d elements; want %d", text, got, want)
		}
	}
}

// Decoding any result uses limited memory.
func TestDecodeResult_LimitsMemory(t *testing.T) {
	const most = 64 << 20
	fill := func(head, body, tail string) string {
		return head + strings.Repeat(body, (maxUnpacked-len(head)-len(tail))/len(body)-1) + tail
	}
	for name, text := range map[string]string{
		"streams":    fill(`{"end":{"streams":[`, `{},`, `{}]}}`),
		"nulls":      fill(`{"end":{"streams":[`, `null,`, `null]}}`),
		"samples":    fill(`{"end":{"streams":[{"samples":[`, `{},`, `{}]}]}}`),
		"no samples": fill(`{"end":{"streams":[{"samples":[`, `null,`, `null]}]}}`),
		"warnings":   fill(`{"warnings":[`, `"",`, `""]}`),
		"unknown":    fill(`{"other":[`, `[],`, `[]]}`),
		"keys":       fill(`{"end":{`, `"kernel":"","cpu":null,`, `"kernel":""}}`),
		"a string":   fill(`{"error":"`, `x`, `"}`),
		"depth":      fill(`{"other":`, `[`, ``),
	} {
		var wire bytes.Buffer
		if err := writeMessage(&wire, kindResult, json.RawMessage(text)); err != nil && name != "depth" {
			t.Fatalf("%s: %v", name, err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if m, err := readMessage(&wire, maxResult); err == nil {
			m.decodeResult(transfer.Spec{Streams: 1}, time.Second)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > most {
			t.Errorf("%s: %d MB for a result of %d MB", name, took>>20, len(text)>>20)
		}
	}
}
