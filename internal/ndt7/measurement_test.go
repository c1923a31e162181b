package ndt7

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestTCPInfo_RoundTrip(t *testing.T) {
	s := transfer.Sample{At: time.Second, Have: transfer.HaveRTT | transfer.HaveMinRTT | transfer.HaveLimits |
		transfer.HaveAcked | transfer.HaveReceived | transfer.HaveRetrans | transfer.HaveNotSent | transfer.HaveSendWnd |
		transfer.HaveCwnd | transfer.HaveInFlight, RTT: 40 * time.Millisecond, RTTVar: time.Millisecond,
		MinRTT: 39 * time.Millisecond, Busy: time.Second, RwndLimited: time.Millisecond, SndbufLimited: 2 * time.Millisecond,
		Acked: 5e6, Sent: 6e6, Received: 7, RetransmittedBytes: 2896, Retransmitted: 2, NotSent: 65536, SendWnd: 1 << 20,
		Cwnd: 1448 * 100, Ssthresh: 1448 * 50, InFlight: 1448 * 99}
	text := must.Get(json.Marshal(Measurement{TCPInfo: newTCPInfo(&s, 1448)}))(t)
	m := must.Get(decode(text))(t)
	if got := m.TCPInfo.sample(); got != s {
		t.Errorf("%+v became %+v by %s", s, got, text)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"TCPInfo":{"BytesAcked":1,"MinRTT":4294967295,"RTT":3,"SndCwnd":-1},"AppInfo":{"NumBytes":-5}}`))
	f.Add([]byte(`{"Origin":"client"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := decode(text)
		if err != nil || m.TCPInfo == nil {
			return
		}
		s := m.TCPInfo.sample()
		end := transfer.End{Streams: []transfer.Stream{{Samples: []transfer.Sample{s}}}}
		_ = end.Validate(transfer.Spec{}, time.Second) // only must not panic
	})
}
