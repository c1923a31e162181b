package socket

import (
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// DecodeLinux decodes struct tcp_info as sock_diag carries it. As with getsockopt, Sample.Have omits fields that the
// shorter struct of an older kernel lacks. idle is the time since anything came from the peer.
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

// AnsweredLinux says that no data came since data was sent last, by the times since both
// (tcpi_last_data_sent, tcpi_last_data_recv; ms).
func AnsweredLinux(b []byte) bool {
	i := fromBytes(b)
	return i.Last_data_sent <= i.Last_data_recv // an answer is often of the same tick
}

// ArrivalsLinux returns the round trip that the receiver estimates from the timestamps of what arrives (tcpi_rcv_rtt)
// and the times since data came and was sent last (tcpi_last_data_recv, tcpi_last_data_sent, in the kernel's ticks). A
// pause of the sender lengthens the first two.
func ArrivalsLinux(b []byte) (rtt, sinceData, sinceSent time.Duration) {
	i := fromBytes(b)
	return time.Duration(i.Rcv_rtt) * time.Microsecond, time.Duration(i.Last_data_recv) * time.Millisecond,
		time.Duration(i.Last_data_sent) * time.Millisecond
}

// DataSegmentsLinux returns the numbers of segments with payload that were sent and that arrived
// (tcpi_data_segs_out, tcpi_data_segs_in, Linux 4.6); 0 where the kernel does not say.
func DataSegmentsLinux(b []byte) (sent, received int64) {
	i := fromBytes(b)
	return int64(i.Data_segs_out), int64(i.Data_segs_in)
}

// AgelessLinux appends to b the same bytes without the four ages tcpi_last_data_sent to tcpi_last_ack_recv. The rest
// changes only when something happened.
func AgelessLinux(b, info []byte) []byte {
	const from, to = unsafe.Offsetof(unix.TCPInfo{}.Last_data_sent), unsafe.Offsetof(unix.TCPInfo{}.Last_ack_recv) + 4
	b = append(b, info[:min(int(from), len(info))]...)
	return append(b, info[min(int(to), len(info)):]...)
}

// MaxPacingLinux is the rate that the program set for its socket, in bit/s (tcpi_max_pacing_rate,
// SO_MAX_PACING_RATE); 0 where it set none, or the kernel does not say.
func MaxPacingLinux(b []byte) float64 {
	i := fromBytes(b)
	// Without one it is the kernel's largest unsigned long.
	if !i.has(endOfPacing) || i.Max_pacing_rate == math.MaxUint64 || i.Max_pacing_rate == math.MaxUint32 {
		return 0
	}
	return float64(i.Max_pacing_rate) * 8
}

func fromBytes(b []byte) (i tcpInfo) {
	whole := unsafe.Slice((*byte)(unsafe.Pointer(&i.TCPInfo)), unsafe.Sizeof(i.TCPInfo))
	i.length = uint32(copy(whole, b))
	return i
}
