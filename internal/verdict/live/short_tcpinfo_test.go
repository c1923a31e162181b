package live

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// ofLength returns a sample as a kernel reports it with a tcp_info of the given length in bytes: 168 up
// to delivery_rate (Linux 4.9), 192 with the three clocks (4.10), 232 with bytes_sent,
// bytes_retrans and snd_wnd (5.4), but without rcv_wnd (6.2).
func ofLength(s transfer.Sample, bytes int) transfer.Sample {
	if bytes < 240 {
		s.Have &^= transfer.HaveReceiveWnd
		s.ReceiveWnd = 0
	}
	if bytes < 232 {
		s.Have &^= transfer.HaveSendWnd
		s.SendWnd, s.Sent, s.RetransmittedBytes = 0, 0, 0
	}
	if bytes < 192 {
		s.Have &^= transfer.HaveLimits
		s.Busy, s.RwndLimited, s.SndbufLimited = 0, 0, 0
	}
	return s
}

func shortened(r *transfer.Result, bytes int) *transfer.Result {
	short := *r
	cut := func(e *transfer.End) *transfer.End {
		c := *e
		c.Streams = append([]transfer.Stream(nil), e.Streams...)
		for i := range c.Streams {
			s := &c.Streams[i]
			samples := make([]transfer.Sample, 0, len(s.Samples))
			for _, sample := range s.Samples {
				samples = append(samples, ofLength(sample, bytes))
			}
			s.Samples = samples
		}
		return &c
	}
	short.Near, short.Far = cut(r.Near), cut(r.Far)
	return &short
}

// TestShorterTCPInfo judges every recorded transfer with the shorter tcp_info of older kernels. A missing field must
// not name a limiter, and no wrong verdict may have high confidence.
func TestShorterTCPInfo(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	least := map[int]float64{168: 0.4, 192: 0.85, 232: 0.95}
	for bytes, enough := range least {
		right, n := 0, 0
		for _, name := range files {
			want, cause, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), ".json.gz"), "_")
			r := shortened(recorded(t, name), bytes)
			sender := &transfer.Result{Spec: r.Spec, Near: seen(r.Sender(), r.Near), Far: seen(r.Sender(), r.Far)}
			receiver := &transfer.Result{Spec: r.Spec, Near: seen(r.Receiver(), r.Near), Far: seen(r.Receiver(), r.Far)}
			for of, half := range map[string]*transfer.Result{"both": r, "sender": sender, "receiver": receiver} {
				v := Judge(half)
				complete(t, v)
				if of == "both" {
					n++
					if v.Limiter == verdict.Name(want) {
						right++
					}
				}
				if v.Limiter != verdict.Name(want) && v.Confidence == verdict.High {
					t.Errorf("%d bytes, %s, %s: %s with high confidence; want %s", bytes, cause, of, v.Limiter, want)
				}
			}
			complete(t, judgeWatched(watchedFrom(r, r.Sender(), 0)))
			complete(t, judgeWatched(watchedFrom(r, r.Receiver(), 0)))
		}
		t.Logf("tcp_info of %d bytes: %d of %d right", bytes, right, n)
		if float64(right) < enough*float64(n) {
			t.Errorf("tcp_info of %d bytes: %d of %d right", bytes, right, n)
		}
	}
}
