package predict

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestTransfer_Recorded compares predictions with testdata/recorded.jsonl: the program's measurements on random paths
// of TestBankPredict's training seeds, on a busy machine. The most disturbed ones are below the range.
func TestTransfer_Recorded(t *testing.T) {
	file := must.Get(os.Open("testdata/recorded.jsonl"))(t)
	defer file.Close()
	lines := json.NewDecoder(file)
	all, within := 0, 0
	for {
		var r struct {
			Path  string
			Setup Setup
			Bps   float64
		}
		if err := lines.Decode(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		path := must.Get(link.Parse(r.Path))(t)
		a := must.Get(Transfer(path, r.Setup))(t)
		all++
		if r.Bps >= a.Low && r.Bps <= a.High {
			within++
		} else {
			t.Logf("%.2f of %.4g Mbit/s: %s %+v", r.Bps/a.Typical, a.Typical/1e6, r.Path, r.Setup)
		}
		widest := 0.15
		if strings.Contains(r.Path, "loss=") {
			widest = 0.40
		}
		if width := (a.High - a.Low) / (a.High + a.Low); width > widest {
			t.Errorf("±%.0f %% is too wide: %s %+v", 100*width, r.Path, r.Setup)
		}
	}
	if all < 150 || float64(within) < 0.88*float64(all) {
		t.Errorf("%d of %d in the predicted range", within, all)
	}
}
