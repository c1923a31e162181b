package socket

import (
	"errors"
	"net"
	"time"
)

// GoneTime is the silence of a far end's kernel after which the far end counts as gone. It is long because a
// measurement that fills a line drops probes and replies too: of one a second at least one arrives in time even where
// 19 of 20 packets are lost.
const GoneTime = 130 * time.Second

// EndWhenGone makes the kernel end a connection whose far end is silent for a time (0: GoneTime). While nothing is in
// flight it probes once a second (tcp(7), SO_KEEPALIVE), so that a peer that vanished frees its slot. silence is
// rounded to seconds and must be 2 s or more.
func EndWhenGone(conn *net.TCPConn, silence time.Duration) error {
	if silence <= 0 {
		silence = GoneTime
	}
	idle := min(10*time.Second, silence/2)
	return errors.Join(endUnacknowledged(conn, silence), conn.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true,
		Idle: idle, Interval: time.Second, Count: int((silence - idle) / time.Second)}))
}
