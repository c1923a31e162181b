//go:build !linux || portable

package socket

import (
	"syscall"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func repairsOf(conn syscall.Conn) (r Repairs) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return r
	}
	var now transfer.Sample
	h, err := Account(raw, &now)
	if err != nil || now.Have&transfer.HaveRetrans == 0 {
		return r
	}
	return Repairs{Retransmitted: now.Retransmitted, Bytes: -1, RTOs: -1, RTT: now.RTT, MinRTT: now.MinRTT,
		MSS: h.SegmentSize(), Known: true}
}
