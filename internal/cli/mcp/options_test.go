package mcp

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

type testOptions struct {
	Word   string  `json:"word" flag:"word"`
	Choice string  `json:"choice,omitempty" flag:"choice" enum:"a,b"`
	Count  int     `json:"count,omitempty" flag:"count" min:"1" max:"9"`
	Hours  float64 `json:"hours,omitempty" flag:"since" unit:"h" min:"0.5" max:"2.5"`
	On     bool    `json:"on,omitempty" flag:"on"`
	Silent string  `json:"silent,omitempty"`
}

func (testOptions) describe() map[string]string { return map[string]string{"word": "a word"} }

func TestOptions_Schema(t *testing.T) {
	got := must.Get(json.Marshal(inputSchema[testOptions]()))(t)
	const want = `{"additionalProperties":false,"properties":{` +
		`"choice":{"description":"","enum":["a","b"],"type":"string"},` +
		`"count":{"description":"","maximum":9,"minimum":1,"type":"integer"},` +
		`"hours":{"description":"","maximum":2.5,"minimum":0.5,"type":"number"},` +
		`"on":{"description":"","type":"boolean"},` +
		`"silent":{"description":"","maxLength":255,"type":"string"},` +
		`"word":{"description":"a word","maxLength":255,"type":"string"}},"required":["word"],"type":"object"}`
	if string(got) != want {
		t.Errorf("%s", got)
	}
}

func TestOptions_Decode(t *testing.T) {
	for text, want := range map[string][]string{
		`{"word":"x"}`: {"--word=x"},
		`{"word":"--x=y","choice":"b","count":9,"hours":1.5,"on":true,"silent":"s"}`: {"--word=--x=y", "--choice=b",
			"--count=9", "--since=1.5h", "--on=true"},
		``: nil, `{}`: nil, `{"word":""}`: nil, `{"word":"x","count":10}`: nil, `{"word":"x","count":-1}`: nil,
		`{"word":"x","hours":0.1}`: nil, `{"word":"x","count":1.5}`: nil, `{"word":"x","choice":"c"}`: nil,
		`{"word":"x","more":1}`: nil, `{"word":7}`: nil, `[]`: nil, `null`: nil, `{"word":"a\nb"}`: nil,
		`{"word":"x"}{"word":"y"}`: nil, `{"word":"x","on":"true"}`: nil,
	} {
		var o testOptions
		err := decodeOptions(json.RawMessage(text), &o)
		if (err == nil) != (want != nil) {
			t.Errorf("%s: %v", text, err)
		}
		if got := flagsOf(&o); err == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
