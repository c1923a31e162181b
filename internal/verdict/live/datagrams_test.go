package live

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func TestDatagramsAreJudged(t *testing.T) {
	const size, second = 1250, time.Second // 10,000 bits
	queue := func(d time.Duration) *transfer.Variation { return &transfer.Variation{Median: d} }
	full := &transfer.CPU{BusiestThread: 0.97}
	host := func(busy float64) *transfer.CPU { return &transfer.CPU{BusiestThread: 0.3, Host: &busy} }
	for _, c := range []struct {
		name       string
		asked      float64
		sent, lost int64
		variation  *transfer.Variation
		near, far  *transfer.CPU
		want       verdict.Name
		code       verdict.Code
	}{
		{"all arrived", 10e6, 1000, 0, queue(0), nil, nil, verdict.Application, verdict.DatagramsAsAsked},
		{"loss of 5 % is no cause", 10e6, 1000, 50, queue(0), nil, nil, verdict.Application, verdict.DatagramsAsAsked},
		{"a full queue", 20e6, 2000, 1000, queue(40 * time.Millisecond), nil, nil, verdict.Bottleneck,
			verdict.DatagramsQueueFull},
		{"loss without a queue", 20e6, 2000, 1000, queue(100 * time.Microsecond), nil, nil, verdict.Congestion,
			verdict.DatagramsNoQueue},
		{"the delay is not known", 20e6, 2000, 1000, nil, nil, nil, verdict.Unknown, verdict.DatagramsLost},
		{"a receiver that cannot follow", 20e6, 2000, 1000, queue(0), nil, full, verdict.CPU,
			verdict.DatagramsReceiverBusy},
		{"others had the receiver's cores", 20e6, 2000, 1000, queue(time.Millisecond), nil, host(0.99), verdict.Unknown,
			verdict.DatagramsReceiverOutOfTime},
		{"a receiver with time to spare", 20e6, 2000, 1000, queue(time.Millisecond), nil, host(0.6), verdict.Congestion,
			verdict.DatagramsNoQueue},
		{"a sender that cannot follow", 0, 1000, 0, queue(0), full, nil, verdict.CPU, verdict.DatagramsSenderSlow},
		{"a device that takes no more", 20e6, 1000, 0, queue(0), host(0.4), nil, verdict.LocalQueue,
			verdict.DatagramsQueuedLocally},
		{"others had the host's cores", 20e6, 1000, 0, queue(0), host(0.99), nil, verdict.Unknown,
			verdict.DatagramsSenderUnknown},
		{"the sender waited for a core", 20e6, 1000, 0, queue(0), &transfer.CPU{BusiestThread: 0.5, RunqueueWait: 0.45},
			nil, verdict.Unknown, verdict.DatagramsSenderUnknown},
		{"the load is not known", 20e6, 1000, 0, queue(0), nil, nil, verdict.Unknown, verdict.DatagramsSenderUnknown},
		{"nothing sent", 10e6, 0, 0, nil, nil, nil, verdict.Unknown, verdict.NoDatagrams},
	} {
		v := JudgeDatagrams(&transfer.DatagramResult{Spec: transfer.DatagramSpec{Direction: transfer.Up, Bps: c.asked,
			Size: size}, Sent: c.sent, Received: c.sent - c.lost, Lost: c.lost, Bytes: (c.sent - c.lost) * size,
			Duration: second, Variation: c.variation, CPU: c.near, FarCPU: c.far})
		if v.Limiter != c.want || len(v.Evidence) != 1 || v.Evidence[0].Code != c.code {
			t.Errorf("%s: %s, %+v", c.name, v.Limiter, v.Evidence)
		}
	}
}

// TestJudgeDatagrams_DownSenderIsFarEnd checks that the CPU figures belong to the right ends.
func TestJudgeDatagrams_DownSenderIsFarEnd(t *testing.T) {
	v := JudgeDatagrams(&transfer.DatagramResult{Spec: transfer.DatagramSpec{Direction: transfer.Down, Size: 1250},
		Sent: 1000, Received: 1000, Bytes: 1250000, Duration: time.Second, FarCPU: &transfer.CPU{BusiestThread: 1}})
	if v.Limiter != verdict.CPU || v.Evidence[0].Code != verdict.DatagramsSenderSlow {
		t.Errorf("%s, %+v", v.Limiter, v.Evidence)
	}
}
