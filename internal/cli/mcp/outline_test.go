package mcp

import (
	"encoding/json"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestTools_AreShort checks that the list of tools, which assistants read before each conversation, is below 20 kB.
func TestTools_AreShort(t *testing.T) {
	size := 0
	for _, tool := range (&assistant{}).tools() {
		for _, part := range []any{tool.Input, tool.Output, tool.Description, tool.Title, tool.Name} {
			text := must.Get(json.Marshal(part))(t)
			size += len(text)
		}
	}
	if size > 18_500 { // the protocol adds 1,433 bytes
		t.Errorf("the tools take %d bytes", size)
	}
}

// TestOutline_ListsKeys checks that an outline has all keys of the document and of its parts, and no references.
func TestOutline_ListsKeys(t *testing.T) {
	full := record.Schema("measure")
	short := outline(full)
	wanted, _ := full["properties"].(map[string]any)
	got, _ := short["properties"].(map[string]any)
	if len(wanted) < 10 || len(got) != len(wanted) {
		t.Errorf("%d keys, want %d", len(got), len(wanted))
	}
	directions, _ := got["directions"].(map[string]any)
	items, _ := directions["items"].(map[string]any)
	parts, _ := items["properties"].(map[string]any)
	if _, ok := parts["limiter"]; !ok {
		t.Errorf("no limiter in a direction: %v", directions)
	}
	text, err := json.Marshal(short)
	if err != nil || len(text) > 4000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
