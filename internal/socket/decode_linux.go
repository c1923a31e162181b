package socket

import (
	"time"
	"unsafe"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// DecodeLinux reads struct tcp_info out of the bytes in which sock_diag carries it. As
// with getsockopt, what a shorter struct of an older kernel lacks is not named in
// Sample.Have. idle is how long ago the peer was last heard of.
func DecodeLinux(b []byte, s *transfer.Sample) (idle time.Duration) {
	i := fromBytes(b)
	i.fill(s)
	if i.Data_segs_in == 0 && i.has(unsafe.Offsetof(i.Data_segs_in)+4) {
		s.Received = 0 // bytes_received counts the FIN
	}
	return time.Duration(min(i.Last_data_recv, i.Last_ack_recv)) * time.Millisecond
}

// HandshakeLinux reads out of the same bytes what the handshake settled.
func HandshakeLinux(b []byte) *transfer.Handshake {
	i := fromBytes(b)
	return i.handshake()
}

// ReorderedLinux is how often segments were seen to arrive out of order (tcpi_reord_seen,
// Linux 4.19); 0 where the kernel does not say.
func ReorderedLinux(b []byte) uint32 {
	i := fromBytes(b)
	if !i.has(unsafe.Offsetof(i.Reord_seen) + 4) {
		return 0
	}
	return i.Reord_seen
}

func fromBytes(b []byte) (i tcpInfo) {
	whole := unsafe.Slice((*byte)(unsafe.Pointer(&i.TCPInfo)), unsafe.Sizeof(i.TCPInfo))
	i.length = uint32(copy(whole, b))
	return i
}
