package main

import (
	"strings"
	"testing"
)

func TestBenchmarkFormat(t *testing.T) {
	rows := strings.Join([]string{
		`{"section":"tune","case":"a","claim":"c","measured":"33.9 Mbit/s (median of 5)","machine":"m"}`,
		`{"section":"tune","case":"a","claim":"c","measured":"40 Mbit/s","machine":"m"}`,
		`{"section":"line","case":"20 Mbit/s × 5 ms","claim":"c","measured":"-0.5 % of 3","machine":"m"}`,
		`{"section":"line","case":"right","claim":"c","measured":"9 of 10 right","machine":"m"}`,
		`{"section":"line","case":"rate","claim":"c","measured":"1.5 of 2 Gbit/s","machine":"m"}`,
		`{"section":"line","case":"gain","claim":"c","measured":"× 1.31 (121 against 92 Mbit/s)","machine":"n"}`,
		`{"section":"line","case":"no figure","claim":"c","measured":"pass","machine":"n"}`,
	}, "\n")
	var out strings.Builder
	if err := bench(strings.NewReader(rows), &out); err != nil {
		t.Fatal(err)
	}
	want := `cpu: m
BenchmarkTune/case=a/claim=c-1 1 4e+07 bit/s
BenchmarkLine/case=20_Mbps_×_5_ms/claim=c-1 1 -0.5 %
BenchmarkLine/case=right/claim=c-1 1 90 %
BenchmarkLine/case=rate/claim=c-1 1 1.5e+09 bit/s
cpu: n
BenchmarkLine/case=gain/claim=c-1 1 1.31 ratio
`
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}
