package socket

import (
	"errors"
	"net"
	"time"
)

// GoneTime is how long a far end's kernel may say nothing at all before the far end counts
// as gone. It is long because what a measurement itself has thrown away on a full line
// holds questions and answers too: of those asked once a second one gets through in time
// even where 19 of 20 packets are lost.
const GoneTime = 130 * time.Second

// EndWhenGone has the kernel end a connection whose far end has been silent for so long
// (0: GoneTime): when nothing is under way it asks once a second (tcp(7), SO_KEEPALIVE). So
// who vanishes without a word does not keep what it holds. silence counts in seconds and
// wants two at least.
func EndWhenGone(conn *net.TCPConn, silence time.Duration) error {
	if silence <= 0 {
		silence = GoneTime
	}
	idle := min(10*time.Second, silence/2)
	return errors.Join(endUnacknowledged(conn, silence), conn.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true,
		Idle: idle, Interval: time.Second, Count: int((silence - idle) / time.Second)}))
}
