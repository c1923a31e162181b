package live

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func pathOf(t *testing.T, name string) *path {
	t.Helper()
	r := recorded(t, name)
	least := r.Sender().MinRTT()
	var all []*connection
	for i := range r.Sender().Streams {
		all = append(all, newConnection(r, i, least))
	}
	return newPath(least, all)
}

// TestSpare_FewSegments checks the lower bound of the link rate from the arrival time of one acknowledgement's
// segments. It distinguishes a window of one BDP from a smaller one, under BBR and with jitter too.
func TestSpare_FewSegments(t *testing.T) {
	for name, want := range map[string]struct {
		least, most float64
		limiter     verdict.Name
		confidence  verdict.Confidence
		link        float64 // bit/s of payload; 0: not known
	}{
		"unknown_receive-buffer-of-a-BDP_2.96-Mbits-x-45.4-ms": {0.7, 1, verdict.Unknown, verdict.Low, 0},
		"receiver-window_fixed-SO_RCVBUF-of-eight-tenths-of-a-BDP_10.2-Mbits-x-14.4-ms": {1.1, 1.3,
			verdict.ReceiverWindow, verdict.Medium, 9.87e6},
		"receiver-window_fixed-SO_RCVBUF-of-half-a-BDP-with-jitter_11.1-Mbits-x-22.4-ms": {1.2, 2,
			verdict.ReceiverWindow, verdict.High, 10.7e6},
		"receiver-window_factor-0-under-bbr_32.8-Mbits-x-78.5-ms": {4, 5, verdict.ReceiverWindow, verdict.High, 31.7e6},
	} {
		name = "testdata/" + name + ".json.gz"
		if got := pathOf(t, name).linkHeadroom; got < want.least || got > want.most {
			t.Errorf("%s: %.2f, want %v to %v", name, got, want.least, want.most)
		}
		v := Judge(recorded(t, name))
		if v.Limiter != want.limiter || v.Confidence != want.confidence {
			t.Errorf("%s: %s %s %v", name, v.Limiter, v.Confidence, v.Evidence)
		}
		if least := v.Evidence[0].Values["link_least_bps"]; least > want.link || least < 0.8*want.link {
			t.Errorf("%s: the link gives %g and more, it gives %g", name, least, want.link)
		}
	}
}

// No link that is full has anything to spare, and none delivers in steps that look like gaps.
func TestFullLinksSpareNothing(t *testing.T) {
	files, err := filepath.Glob("testdata/bottleneck_*.json.gz")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		p := pathOf(t, name)
		if p.linkHeadroom > 1 || p.arrivalVariation >= 0.2 && !strings.Contains(name, "bbr") {
			t.Errorf("%s: spare %.2f, ripple %.2f", name, p.linkHeadroom, p.arrivalVariation)
		}
	}
}

// A least round trip that only full segments had says nothing of how long they take: the handshake woke a radio up.
func TestALateHandshakeSparesNothing(t *testing.T) {
	const name = "testdata/receiver-window_factor-0-under-bbr_32.8-Mbits-x-78.5-ms.json.gz"
	r := recorded(t, name)
	for i := range r.Sender().Streams {
		r.Sender().Streams[i].Samples[0].RTT += 60 * time.Millisecond
	}
	c := newConnection(r, 0, r.Sender().MinRTT())
	if got := newPath(r.Sender().MinRTT(), []*connection{c}).linkHeadroom; got != 0 {
		t.Errorf("%.2f, want it not known", got)
	}
}
