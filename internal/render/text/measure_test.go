package text_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func measured() *transfer.Result {
	receiver := transfer.Stream{Bytes: 1_637_500, First: 0, Last: time.Second,
		Handshake:     &transfer.Handshake{MSS: 1460, SendScale: 7, ReceiveScale: -1},
		ReceiveBuffer: transfer.Buffer{Requested: 65535, Granted: 131070, Effective: 65535}}
	return &transfer.Result{Spec: transfer.Spec{Direction: transfer.Up}, Far: &transfer.End{Kernel: "Linux 6.1",
		Streams: []transfer.Stream{receiver}}}
}

func TestUnseenEndIsAbsentNotZero(t *testing.T) {
	v := verdict.Verdict{Limiter: verdict.ReceiverWindow, Confidence: verdict.Medium,
		Shares: verdict.Shares{verdict.ReceiverWindow: 1}}
	out, err := json.Marshal(report.Direction(measured(), v, nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, absent := range []string{"retransmitted_segments", "rtt_min_s", "mss_bytes", `"send_buffer"`, "window_scale",
		"intervals"} {
		if strings.Contains(string(out), absent) {
			t.Errorf("%s is in %s, though nobody knows it", absent, out)
		}
	}
	for _, present := range []string{`"goodput_bps":13100000`, `"bytes":1637500`, `"limiter":"receiver-window"`,
		`"receive_buffer":{"requested_bytes":65535,"granted_bytes":131070,"effective_bytes":65535,"automatic":false}`} {
		if !strings.Contains(string(out), present) {
			t.Errorf("%s is missing from %s", present, out)
		}
	}
}

// TestOneInstantHasNoRate checks that data with one time stamp has no goodput and that the report says so.
func TestOneInstantHasNoRate(t *testing.T) {
	r := measured()
	r.Far.Streams[0].First = r.Far.Streams[0].Last
	d := report.Direction(r, verdict.Verdict{Limiter: verdict.Unknown, Confidence: verdict.Low}, nil)
	var b strings.Builder
	text.Measure(&b, &record.Measure{Directions: []record.Direction{d}})
	const said = "goodput         not known: all 1.56 MiB came at one instant\n"
	if d.GoodputBps != nil || !strings.Contains(b.String(), said) {
		t.Errorf("%v\n%s", d.GoodputBps, b.String())
	}
	r.Far.Streams[0].Bytes = 0 // where nothing came there is a rate
	if d = report.Direction(r, d.Verdict, nil); d.GoodputBps == nil || *d.GoodputBps != 0 {
		t.Errorf("of nothing: %v", d.GoodputBps)
	}
}

func TestMeasureText(t *testing.T) {
	v := verdict.Verdict{Limiter: verdict.ReceiverWindow, Subtype: verdict.Fixed, Confidence: verdict.Medium,
		Shares: verdict.Shares{verdict.ReceiverWindow: 0.97, verdict.Unknown: 0.03},
		Evidence: []verdict.Evidence{{Limiter: verdict.ReceiverWindow, Text: "receive window 65,535 bytes at 40.1 ms " +
			"allows 13.1 Mbit/s"}}}
	m := record.Measure{Peer: "b:5201", Directions: []record.Direction{report.Direction(measured(), v, nil)}}
	var b strings.Builder
	text.Measure(&b, &m)
	want := `13.1 Mbit/s up, probably limited by receiver-window (fixed, 97 % of the time). Enlarge the buffers
of both ends.

peer  b:5201
near  cannot be seen
far   cannot be seen

UP (this host sends)
  goodput         13.1 Mbit/s   (1.56 MiB in 1 s)
  limited by      receiver-window (fixed), medium confidence
                  receive window 65,535 bytes at 40.1 ms allows 13.1 Mbit/s
  time went to    receiver-window 97 % · unknown 3 %
  do              give both ends larger buffers, or leave SO_RCVBUF and SO_SNDBUF alone so that the
                  systems size them (fullpipe tune finds how large)
  send buffer     cannot be seen
  receive buffer  64 KiB asked, 128 KiB granted, at most 64 KiB used
  interrupted     these figures are of the part that was measured
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// TestMeasureText_BufferAboveGranted checks that bytes in flight above a granted send buffer are explained.
func TestMeasureText_BufferAboveGranted(t *testing.T) {
	for flight, want := range map[int]string{
		131_072: "64 KiB asked, 128 KiB granted, at most 128 KiB used\n",
		189_688: "185 KiB used (the system checks the size\n",
	} {
		d := report.Direction(measured(), verdict.Verdict{Limiter: verdict.SendBuffer}, nil)
		d.Windows.SendBuffer = &record.Buffer{RequestedBytes: 65_536, GrantedBytes: 131_072, EffectiveBytes: flight}
		var b strings.Builder
		text.Measure(&b, &record.Measure{Directions: []record.Direction{d}})
		if !strings.Contains(b.String(), want) {
			t.Errorf("%d bytes in flight: no %q in\n%s", flight, want, b.String())
		}
	}
}
