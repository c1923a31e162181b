package socket

import (
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// tcpInfo is struct tcp_info as the kernel filled it. Older kernels fill less of it:
// length keeps how much.
type tcpInfo struct {
	unix.TCPInfo
	length uint32
	// queued is the result of SIOCOUTQ or SIOCINQ. It is a field so that a sample allocates nothing.
	queued int32
}

// Bytes 6 and 7 are bit fields, which unix.TCPInfo leaves out: the window scales
// (snd_wscale in the low half) and delivery_rate_app_limited in the lowest bit.
func (i *tcpInfo) scales() (send, receive int) {
	b := (*[8]byte)(unsafe.Pointer(i))[6]
	return int(b & 15), int(b >> 4)
}

// largestWindow is what the window field can express (RFC 7323 section 2.2); the kernel
// keeps a larger rcv_wnd for itself.
func (i *tcpInfo) largestWindow() int64 {
	if i.Options&optWscale == 0 {
		return math.MaxUint16
	}
	_, receive := i.scales()
	return math.MaxUint16 << receive
}

func (i *tcpInfo) appLimited() bool { return (*[8]byte)(unsafe.Pointer(i))[7]&1 != 0 }

// Options of tcpi_options (include/uapi/linux/tcp.h).
const (
	optTimestamps = 1
	optSACK       = 2
	optWscale     = 4
	optECN        = 8
)

func (i *tcpInfo) read(fd int) error {
	i.length = uint32(unsafe.Sizeof(i.TCPInfo))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_INFO,
		uintptr(unsafe.Pointer(&i.TCPInfo)), uintptr(unsafe.Pointer(&i.length)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func (i *tcpInfo) ioctl(fd int, request uintptr) (int64, bool) {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&i.queued)))
	return int64(i.queued), errno == 0
}

// has says whether the kernel filled the struct up to the field that ends at end.
func (i *tcpInfo) has(end uintptr) bool { return uintptr(i.length) >= end }

var (
	endOfRetrans  = unsafe.Offsetof(unix.TCPInfo{}.Total_retrans) + 4
	endOfPacing   = unsafe.Offsetof(unix.TCPInfo{}.Max_pacing_rate) + 8
	endOfReceived = unsafe.Offsetof(unix.TCPInfo{}.Bytes_received) + 8
	endOfSegments = unsafe.Offsetof(unix.TCPInfo{}.Segs_in) + 4
	endOfNotSent  = unsafe.Offsetof(unix.TCPInfo{}.Notsent_bytes) + 4
	endOfMinRTT   = unsafe.Offsetof(unix.TCPInfo{}.Min_rtt) + 4
	endOfRate     = unsafe.Offsetof(unix.TCPInfo{}.Delivery_rate) + 8
	endOfLimits   = unsafe.Offsetof(unix.TCPInfo{}.Sndbuf_limited) + 8
	endOfSent     = unsafe.Offsetof(unix.TCPInfo{}.Bytes_retrans) + 8
	endOfMarked   = unsafe.Offsetof(unix.TCPInfo{}.Delivered_ce) + 4
	endOfDisorder = unsafe.Offsetof(unix.TCPInfo{}.Rcv_ooopack) + 4
	endOfNeedless = unsafe.Offsetof(unix.TCPInfo{}.Reord_seen) + 4
	endOfSendWnd  = unsafe.Offsetof(unix.TCPInfo{}.Snd_wnd) + 4
	endOfRecvWnd  = unsafe.Offsetof(unix.TCPInfo{}.Rcv_wnd) + 4
)

const (
	ssthreshUnset = math.MaxInt32 // TCP_INFINITE_SSTHRESH
	caRecovery    = 3             // TCP_CA_Recovery; TCP_CA_Loss is 4
)

func micros[T uint32 | uint64](v T) time.Duration { return time.Duration(v) * time.Microsecond }

// fill converts the kernel's struct to a Sample. Have omits fields that the kernel did not fill.
func (i *tcpInfo) fill(s *transfer.Sample) {
	mss := int64(i.Snd_mss)
	s.Have |= transfer.HaveCwnd | transfer.HaveInFlight | transfer.HaveRecovery
	s.Cwnd = int64(i.Snd_cwnd) * mss
	if i.Snd_ssthresh < ssthreshUnset {
		s.Ssthresh = int64(i.Snd_ssthresh) * mss
	}
	// tcp_packets_in_flight: sent, neither selectively acknowledged nor marked lost.
	s.InFlight = max(int64(i.Unacked)-int64(i.Sacked)-int64(i.Lost)+int64(i.Retrans), 0) * mss
	s.Lost = max(min(int64(i.Lost), int64(i.Unacked))-int64(i.Retrans), 0)
	s.Recovering = i.Ca_state >= caRecovery
	s.Timeouts = int64(i.Retransmits)
	if i.Rtt > 0 {
		s.Have |= transfer.HaveRTT
		s.RTT = micros(i.Rtt)
		s.RTTVar = micros(i.Rttvar)
	}
	if i.has(endOfRetrans) {
		s.Have |= transfer.HaveRetrans
		s.Retransmitted = int64(i.Total_retrans)
	}
	if i.has(endOfReceived) {
		s.Have |= transfer.HaveAcked | transfer.HaveReceived
		s.Acked = int64(i.Bytes_acked)
		s.Received = int64(i.Bytes_received)
	}
	if i.has(endOfSegments) {
		s.Have |= transfer.HaveSegmentsIn
		s.SegmentsIn = int64(i.Segs_in)
	}
	if i.has(endOfNotSent) {
		s.Have |= transfer.HaveNotSent
		s.NotSent = int64(i.Notsent_bytes)
	}
	if i.has(endOfMinRTT) && i.Min_rtt != 0 && i.Min_rtt != math.MaxUint32 {
		s.Have |= transfer.HaveMinRTT
		s.MinRTT = micros(i.Min_rtt)
	}
	if i.has(endOfRate) && i.has(endOfPacing) {
		s.Have |= transfer.HaveRate
		s.AppLimited = i.appLimited()
		s.DeliveryBps = float64(i.Delivery_rate) * 8
		if i.Pacing_rate != math.MaxUint64 {
			s.PacingBps = float64(i.Pacing_rate) * 8
		}
	}
	if i.has(endOfLimits) {
		s.Have |= transfer.HaveLimits
		s.Busy = micros(i.Busy_time)
		s.RwndLimited = micros(i.Rwnd_limited)
		s.SndbufLimited = micros(i.Sndbuf_limited)
	}
	if i.has(endOfSent) {
		s.Sent = int64(i.Bytes_sent)
		s.RetransmittedBytes = int64(i.Bytes_retrans)
		// Segments need not be full: the unacknowledged bytes are an upper bound. A reset clears the kernel's queue of
		// unacknowledged segments, which never arrived (tcp_write_queue_purge).
		unacked := max(s.Sent-s.RetransmittedBytes-s.Acked, 0)
		s.InFlight = min(s.InFlight, unacked)
		if i.Unacked == 0 {
			s.InFlight = unacked
		}
	}
	if i.has(endOfMarked) {
		s.Have |= transfer.HaveDeliveredCE
		s.DeliveredCE = int64(i.Delivered_ce)
	}
	if i.has(endOfDisorder) {
		s.Have |= transfer.HaveRcvOOOPack
		s.RcvOOOPack = int64(i.Rcv_ooopack)
	}
	if i.has(endOfNeedless) {
		s.Have |= transfer.HaveDSACKDups
		s.DSACKDups = int64(i.Dsack_dups)
		s.ReordSeen = int64(i.Reord_seen)
	}
	if i.has(endOfSendWnd) {
		s.Have |= transfer.HaveSendWnd
		s.SendWnd = int64(i.Snd_wnd)
	}
	if i.has(endOfRecvWnd) {
		s.Have |= transfer.HaveReceiveWnd
		s.ReceiveWnd = min(int64(i.Rcv_wnd), i.largestWindow())
	}
}

func (i *tcpInfo) handshake() *transfer.Handshake {
	h := &transfer.Handshake{
		MSS: int(i.Snd_mss), SendScale: -1, ReceiveScale: -1,
		SACK: i.Options&optSACK != 0, Timestamps: i.Options&optTimestamps != 0, ECN: i.Options&optECN != 0,
		PathMTU: int(i.Pmtu),
	}
	if i.Options&optWscale != 0 {
		h.SendScale, h.ReceiveScale = i.scales()
	}
	return h
}
