package live

import (
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// recording is the JSON form of a Connection and of the judged direction.
type recording struct {
	Sends                                       bool
	Of                                          []transfer.Sample
	Queues                                      []Queues
	Congestion                                  string
	Handshake                                   *transfer.Handshake
	SendBuffer, ReceiveBuffer, ReceiveBufferMax int64
	PacingBps                                   float64
	Acked                                       int64
}

// TestJudge_Recorded judges connections of other programs (Python, nginx) as `why` sampled them in a lab on a busy
// machine. A file's name begins with the limiter.
func TestJudge_Recorded(t *testing.T) {
	files, err := filepath.Glob("testdata/watched/*.json.gz")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d recordings, %v", len(files), err)
	}
	for _, name := range files {
		want, cause, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), ".json.gz"), "_")
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		var r recording
		if err := json.NewDecoder(unpacked).Decode(&r); err != nil {
			t.Fatal(err)
		}
		file.Close()
		c := &Watched{Samples: Samples{Of: r.Of, Queues: r.Queues}, Congestion: r.Congestion, Handshake: r.Handshake,
			SendBuffer: r.SendBuffer, ReceiveBuffer: r.ReceiveBuffer, ReceiveBufferMax: r.ReceiveBufferMax,
			PacingBps: r.PacingBps, Acked: r.Acked}
		v := c.Judge(r.Sends)
		if v.Limiter != verdict.Name(want) || v.Confidence == verdict.High {
			t.Errorf("%s: %s (%s), %s; want %s: %v %v", cause, v.Limiter, v.Subtype, v.Confidence, want, v.Shares,
				v.Evidence)
		}
		sums(t, cause, v)
	}
}
