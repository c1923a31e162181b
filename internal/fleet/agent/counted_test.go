package agent

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestCounted checks the far end's own time from the first to the last byte at the receiver.
func TestCounted(t *testing.T) {
	const ms = time.Millisecond
	sender := &transfer.End{Streams: []transfer.Stream{{Bytes: 5e6, First: ms, Last: 300 * ms}}} // all in its buffer
	for at := 40 * ms; at <= 2*time.Second; at += 40 * ms {
		sender.Streams[0].Samples = append(sender.Streams[0].Samples, transfer.Sample{At: at,
			Have: transfer.HaveAcked | transfer.HaveMinRTT, MinRTT: 30 * ms, Acked: min(int64(at/ms)*2500, 5e6)})
	}
	receiver := &transfer.End{Streams: []transfer.Stream{{Bytes: 3e6, First: 20 * ms, Last: 1900 * ms},
		{Bytes: 2e6, First: 25 * ms, Last: 2020 * ms}}}
	for name, c := range map[string]struct {
		direction transfer.Direction
		end       *transfer.End
		limit     time.Duration
		want      time.Duration
	}{
		"receiver":            {transfer.Up, receiver, 5 * time.Second, 2 * time.Second},
		"sender":              {transfer.Down, sender, 5 * time.Second, 2000*ms - 31*ms},
		"sender, by its time": {transfer.Down, sender, time.Second, time.Second},
		"nothing came":        {transfer.Up, nil, time.Second, 0},
		"nothing was sent":    {transfer.Down, nil, time.Second, 0},
	} {
		bytes, took := counted(&transfer.Result{Spec: transfer.Spec{Direction: c.direction, Time: c.limit}, Far: c.end})
		if took != c.want || c.end != nil && bytes != 5e6 {
			t.Errorf("%s: %d bytes in %v, want %v", name, bytes, took, c.want)
		}
	}
	if sender.Streams[0].Last != 300*ms {
		t.Error("the result for the near end was changed")
	}
}
