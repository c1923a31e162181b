//go:build !portable

package socket

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

var endOfRTOs = unsafe.Offsetof(unix.TCPInfo{}.Total_rto_time) + 4

func repairsOf(conn syscall.Conn) (r Repairs) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return r
	}
	raw.Control(func(fd uintptr) {
		var info tcpInfo
		if info.read(int(fd)) == nil {
			r = info.repairs()
		}
	})
	return r
}

func (i *tcpInfo) repairs() Repairs {
	r := Repairs{Retransmitted: int64(i.Total_retrans), Bytes: -1, RTOs: -1, RTT: micros(i.Rtt), MSS: int64(i.Snd_mss),
		Known: i.has(endOfRetrans)}
	if i.has(endOfSent) {
		r.Bytes = int64(i.Bytes_retrans)
	}
	if i.has(endOfRTOs) {
		r.RTOs = int64(i.Total_rto)
	}
	if i.has(endOfMinRTT) && i.Min_rtt != 1<<32-1 {
		r.MinRTT = micros(i.Min_rtt)
	}
	return r
}
