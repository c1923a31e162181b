package live_test

import (
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// A transfer whose sender's kernel says that the receiver's window of 64 KiB was full all the
// time, at 40 ms.
func ExampleJudge() {
	const window, rtt = 65535, 40 * time.Millisecond
	const have = transfer.HaveRTT | transfer.HaveMinRTT | transfer.HaveCwnd | transfer.HaveSendWnd |
		transfer.HaveInFlight |
		transfer.HaveNotSent | transfer.HaveLimits | transfer.HaveRetrans | transfer.HaveAcked
	var sender transfer.Stream
	for at := time.Duration(0); at <= 4*time.Second; at += rtt {
		sender.Samples = append(sender.Samples, transfer.Sample{At: at, Have: have, RTT: rtt, MinRTT: rtt,
			Cwnd: 4 * window, Ssthresh: 2 * window, SendWnd: window, InFlight: window, NotSent: 1 << 20, Busy: at,
			RwndLimited: at,
			Acked:       int64(at/rtt) * window})
	}
	sender.Last, sender.Bytes = 4*time.Second, 100*window
	v := live.Judge(&transfer.Result{Spec: transfer.Spec{Direction: transfer.Up}, Complete: true,
		Near: &transfer.End{Streams: []transfer.Stream{sender}}})
	fmt.Println(v.Limiter, v.Confidence, v.Evidence[0].Code)
	// Output: receiver-window medium receive-window-full
}
