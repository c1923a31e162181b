package socket

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// The decoders below read the bytes of a connection's statistics on Windows, macOS and FreeBSD. They are portable, so
// that every system tests them; all three systems run on little-endian machines only. Sample.Have omits fields that a
// system does not report.

// record reads fields of a C struct at their offsets; a field that the kernel did not
// fill reads as 0 and is not there.
type record []byte

func (r record) has(end int) bool { return len(r) >= end }

func (r record) u8(at int) uint8 {
	if !r.has(at + 1) {
		return 0
	}
	return r[at]
}

func (r record) u32(at int) int64 {
	if !r.has(at + 4) {
		return 0
	}
	return int64(binary.LittleEndian.Uint32(r[at:]))
}

func (r record) u64(at int) int64 {
	if !r.has(at + 8) {
		return 0
	}
	return int64(binary.LittleEndian.Uint64(r[at:]) & (1<<63 - 1))
}

func (r record) micros(at int) time.Duration { return time.Duration(r.u32(at)) * time.Microsecond }
func (r record) millis(at int) time.Duration { return time.Duration(r.u32(at)) * time.Millisecond }

// Sizes of TCP_INFO_v0 (Windows 10 1703) and v1 (Windows 10 1809), mstcpip.h.
const (
	windowsInfoV0 = 88
	windowsInfoV1 = 136
)

// DecodeWindows reads TCP_INFO_v0 or v1, the results of SIO_TCP_INFO. Version 1 has the three states of RFC 4898
// (tcpEStatsPerfSndLimTime*). They have no idle state: time without writes counts as sender-limited, so that
// Sample.SendLimited is the send buffer's only for a program that never stops writing.
func DecodeWindows(b []byte, s *transfer.Sample) error {
	r := record(b)
	if !r.has(windowsInfoV0) {
		return fmt.Errorf("TCP_INFO of %d bytes, less than version 0's %d", len(b), windowsInfoV0)
	}
	s.Have |= transfer.HaveRTT | transfer.HaveMinRTT | transfer.HaveInFlight | transfer.HaveCwnd | transfer.HaveSendWnd |
		transfer.HaveReceiveWnd | transfer.HaveAcked | transfer.HaveReceived | transfer.HaveRetrans
	s.RTT = r.micros(20)
	s.MinRTT = r.micros(24)
	s.InFlight = r.u32(28)
	s.Cwnd = r.u32(32)
	s.SendWnd = r.u32(36)
	s.ReceiveWnd = r.u32(40)
	s.Sent = r.u64(48)
	s.Received = r.u64(56)
	s.RetransmittedBytes = r.u32(68)
	if mss := r.u32(4); mss > 0 { // bytes only are counted
		s.Retransmitted = (s.RetransmittedBytes + mss - 1) / mss
	}
	s.Acked = max(s.Sent-s.RetransmittedBytes-s.InFlight, 0)
	if r.has(windowsInfoV1) {
		s.Have |= transfer.HaveLimits
		s.RwndLimited = r.millis(92)
		s.SndbufLimited = r.millis(124)
		s.Busy = s.RwndLimited + r.millis(108) + s.SndbufLimited
	}
	return nil
}

// tcpConnectionInfo is the least length of macOS's struct tcp_connection_info
// (netinet/tcp.h, macOS 10.11).
const tcpConnectionInfo = 112

// DecodeDarwin reads macOS's struct tcp_connection_info. Its times have a resolution of 1 ms. It has neither the
// acknowledged bytes nor the least RTT.
func DecodeDarwin(b []byte, s *transfer.Sample) (*transfer.Handshake, error) {
	r := record(b)
	if !r.has(tcpConnectionInfo) {
		return nil, fmt.Errorf("tcp_connection_info of %d bytes, not %d", len(b), tcpConnectionInfo)
	}
	const lossRecovery = 1 // TCPCI_FLAG_LOSSRECOVERY
	s.Have |= transfer.HaveRTT | transfer.HaveCwnd | transfer.HaveSendWnd | transfer.HaveReceiveWnd | transfer.HaveQueue |
		transfer.HaveRetrans | transfer.HaveReceived
	s.Recovering = r.u32(8)&lossRecovery != 0
	s.Ssthresh = unset(r.u32(20))
	s.Cwnd = r.u32(24)
	s.SendWnd = r.u32(28)
	s.Queued = r.u32(32)
	s.ReceiveWnd = r.u32(36)
	s.RTT = r.millis(44)
	s.RTTVar = r.millis(48)
	s.Sent = r.u64(64)
	s.RetransmittedBytes = r.u64(72)
	s.Received = r.u64(88)
	s.Retransmitted = r.u64(104)
	return bsdHandshake(int(r.u32(16)), int(r.u8(1)), int(r.u8(2)), r.u32(4)), nil
}

// Lengths of FreeBSD's struct tcp_info (netinet/tcp.h): up to the FreeBSD 8 fields, and
// with those of FreeBSD 14.
const (
	freebsdInfo   = 132
	freebsdInfo14 = 240
)

// DecodeFreeBSD reads FreeBSD's struct tcp_info. Many of its fields are placeholders for Linux's and always 0; before
// FreeBSD 14 it has no bytes in flight.
func DecodeFreeBSD(b []byte, s *transfer.Sample) (*transfer.Handshake, error) {
	r := record(b)
	if !r.has(freebsdInfo) {
		return nil, fmt.Errorf("tcp_info of %d bytes, less than %d", len(b), freebsdInfo)
	}
	s.Have |= transfer.HaveRTT | transfer.HaveCwnd | transfer.HaveSendWnd | transfer.HaveReceiveWnd | transfer.HaveRetrans
	s.RTT = r.micros(68)
	s.RTTVar = r.micros(72)
	s.Ssthresh = unset(r.u32(76))
	s.Cwnd = r.u32(80)
	s.ReceiveWnd = r.u32(96)
	s.SendWnd = r.u32(100)
	s.Retransmitted = r.u32(120)
	if r.has(freebsdInfo14) {
		s.Have |= transfer.HaveInFlight
		s.InFlight = int64(uint32(r.u32(180) - r.u32(176))) // snd_max - snd_una, sequence numbers
	}
	scales := int(r.u8(6))
	return bsdHandshake(int(r.u32(16)), scales&15, scales>>4, int64(r.u8(5))), nil
}

// bsdHandshake reads TCPI_OPT_* and TCPCI_OPT_*, which agree.
func bsdHandshake(mss, sendScale, receiveScale int, options int64) *transfer.Handshake {
	h := &transfer.Handshake{MSS: mss, SendScale: -1, ReceiveScale: -1,
		Timestamps: options&1 != 0, SACK: options&2 != 0, ECN: options&8 != 0}
	if options&4 != 0 {
		h.SendScale = sendScale
		h.ReceiveScale = receiveScale
	}
	return h
}

// unset is 0 for the initial slow start threshold: the largest window, 65535 << 14.
func unset(ssthresh int64) int64 {
	const largest = 65535 << 14
	if ssthresh >= largest {
		return 0
	}
	return ssthresh
}
