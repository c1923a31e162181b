package svg

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// A transfer of 10 ms samples with a window far above what flies and one retransmission.
func TestPicture(t *testing.T) {
	r := measured()
	sender := transfer.Stream{Last: 300 * time.Millisecond}
	for i := range 30 {
		sender.Samples = append(sender.Samples, transfer.Sample{At: time.Duration(i) * 10 * time.Millisecond,
			RTT:      40 * time.Millisecond,
			InFlight: 8192, SendWnd: 1 << 20, Cwnd: 14480, Acked: int64(i) * 2048, Retransmitted: int64(i / 20)})
	}
	r.Near = &transfer.End{Streams: []transfer.Stream{sender}}
	var out strings.Builder
	v := verdict.Verdict{Limiter: verdict.SendBuffer, Confidence: verdict.Medium}
	must.Do(t, Picture(&out, drawn(r, v)))
	for _, want := range []string{"send-buffer: 13.1 Mbit/s (medium confidence)", "window (1.049 MB, above)",
		"retransmitted", "40 ms"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the picture has no %q", want)
		}
	}
	for d := xml.NewDecoder(strings.NewReader(out.String())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
	if err := Picture(io.Discard, drawn(measured(), v)); !errors.Is(err, ErrNothingToDraw) {
		t.Errorf("without the sender: %v", err)
	}
}

func measured() *transfer.Result {
	receiver := transfer.Stream{Bytes: 1_637_500, First: 0, Last: time.Second,
		Handshake:     &transfer.Handshake{MSS: 1460, SendScale: 7, ReceiveScale: -1},
		ReceiveBuffer: transfer.Buffer{Requested: 65535, Granted: 131070, Effective: 65535}}
	return &transfer.Result{Spec: transfer.Spec{Direction: transfer.Up}, Far: &transfer.End{Kernel: "Linux 6.1",
		Streams: []transfer.Stream{receiver}}}
}

func drawn(r *transfer.Result, v verdict.Verdict) *record.Direction {
	d := report.Direction(r, v, nil)
	return &d
}
