package sweep

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestParseSizes(t *testing.T) {
	for text, want := range map[string][]int{
		"8K":                  {8192},
		"64K, automatic ,8K":  {8192, 65536, 0},
		"8K-64K:x2":           {8192, 16384, 32768, 65536},
		"8K-64K":              {8192, 16384, 32768, 65536},
		"8K-40K:+16K":         {8192, 24576, 40960},
		"10kB-30kB:x1.5,1460": {1460, 10000, 15000, 22500},
		"Automatic":           {0},
		"1-4:x1.01":           {1, 2, 3, 4},
	} {
		if got, err := ParseSizes(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":             "not a number",
		"0":            "0 bytes",
		"8K,8192":      "twice",
		"64K-8K:x2":    "ends before",
		"8K-64K:x1":    "no factor",
		"8K-64K:xNaN":  "no factor",
		"8K-64K:2":     "no step",
		"8K-64K:+0":    "0 bytes",
		"1-1M:+1":      "more than",
		"4GiB":         "more than a socket",
		"8K-64K:+8 ox": "unknown unit",
	} {
		if got, err := ParseSizes(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want an error with %q", text, got, err, want)
		}
	}
}

func FuzzParseSizes(f *testing.F) {
	for _, text := range []string{"8K-64K:x2", "automatic,1", "1-2147483647:x1.01", "8K-64K:+8K"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sizes, err := ParseSizes(text)
		if err != nil {
			return
		}
		if err := (Axes{sizes, []int{0}, []int{0}, []transfer.Direction{transfer.Up}, []string{""}}).Check(); err != nil {
			t.Errorf("%q: %v: %v", text, sizes, err)
		}
	})
}

func TestCells(t *testing.T) {
	axes := Axes{Send: []int{1, 2}, Receive: []int{3, 0}, Write: []int{0}, Directions: []transfer.Direction{transfer.Up,
		transfer.Down}, Congestion: []string{"", "bbr"}}
	must.Do(t, axes.Check())
	cells := axes.Cells()
	if len(cells) != 16 || cells[1] != (record.SweepSetup{Direction: transfer.Up, Send: 2, Receive: 3}) ||
		cells[15] != (record.SweepSetup{Direction: transfer.Down, Congestion: "bbr", Send: 2}) {
		t.Errorf("%v", cells)
	}
	s := spec(cells[15], time.Second)
	if s.Far.SendBuffer != 2 || s.Far.Congestion != "bbr" || s.Near.ReceiveBuffer != 0 || s.Near.SendBuffer != 0 ||
		s.Time != time.Second {
		t.Errorf("%+v", s)
	}
	axes.Send = make([]int, 2)
	if axes.Check() == nil {
		t.Error("the same value twice")
	}
	long := make([]int, 200)
	for i := range long {
		long[i] = i + 1
	}
	axes.Send, axes.Receive = long, long
	if axes.Check() == nil {
		t.Error("160,000 cells")
	}
}
