// Package ndt7 implements both roles of M-Lab's ndt7 protocol (m-lab/ndt-server, spec/ndt7-protocol.md, v0.11.0).
// Browsers support it too, so a host without this program can be measured.
//
// Flow of a test:
//
// 1. The client connects by TLS and requests the download or upload path as a WebSocket.
// 2. The sender writes binary messages for up to ten seconds.
// 3. Both ends send measurements as text: the server its TCP_INFO, the client its received bytes.
// 4. The server closes the WebSocket; the client confirms.
package ndt7

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Constants of the specification.
const (
	Protocol     = "net.measurementlab.ndt.v7" // the WebSocket subprotocol
	DownloadPath = "/ndt/v7/download"
	UploadPath   = "/ndt/v7/upload"

	longest     = 10 * time.Second // a test
	hardEnd     = 13 * time.Second // when a connection may be closed
	maxQuery    = 4096             // bytes
	maxMessage  = 1 << 24          // bytes that a receiver must accept
	firstSize   = 1 << 13          // bytes of the first message
	largestSize = 1 << 20          // bytes, like M-Lab's server; larger ones gain little
	scaling     = 16               // a message is doubled while it is below this share of the sent bytes
	maxText     = 16 << 10         // bytes of a measurement, our limit

	// Measurements follow a Poisson process, so that they synchronize with nothing.
	meanEvery = 250 * time.Millisecond
	minEvery  = 25 * time.Millisecond
	maxEvery  = 625 * time.Millisecond
	// An upload's receiver sends nothing else, so its kernel measures RTT by them: close to, and at most, the
	// specified ten per second.
	uploadEvery = 90 * time.Millisecond
	uploadLeast = 100 * time.Millisecond
)

// Measurement is what each end sends to the other. Times are in µs.
type Measurement struct {
	AppInfo        *AppInfo        `json:",omitempty"`
	ConnectionInfo *ConnectionInfo `json:",omitempty"`
	Origin         string          `json:",omitempty"` // "server" or "client"
	Test           string          `json:",omitempty"` // "download" or "upload"
	TCPInfo        *TCPInfo        `json:",omitempty"`
}

// AppInfo is the payload moved by the program, without protocol overhead.
type AppInfo struct {
	ElapsedTime int64
	NumBytes    int64
}

// ConnectionInfo has both addresses as the server sees them.
type ConnectionInfo struct {
	Client, Server string
	UUID           string `json:",omitempty"`
}

// TCPInfo is the kernel's TCP_INFO. Absent values are unknown. The fields from SndMSS on go beyond the
// specification. M-Lab's server sends most of them under the same names, and the verdict needs them.
type TCPInfo struct {
	BusyTime      *int64 `json:",omitempty"`
	BytesAcked    *int64 `json:",omitempty"`
	BytesReceived *int64 `json:",omitempty"`
	BytesSent     *int64 `json:",omitempty"`
	BytesRetrans  *int64 `json:",omitempty"`
	ElapsedTime   int64
	MinRTT        *int64 `json:",omitempty"`
	RTT           *int64 `json:",omitempty"`
	RTTVar        *int64 `json:",omitempty"`
	RWndLimited   *int64 `json:",omitempty"`
	SndBufLimited *int64 `json:",omitempty"`

	SndMSS       *int64 `json:",omitempty"` // bytes
	SndCwnd      *int64 `json:",omitempty"` // segments
	SndSsThresh  *int64 `json:",omitempty"` // segments
	Unacked      *int64 `json:",omitempty"` // segments
	NotsentBytes *int64 `json:",omitempty"`
	DeliveryRate *int64 `json:",omitempty"` // bytes/s
	TotalRetrans *int64 `json:",omitempty"` // segments
	SndWnd       *int64 `json:",omitempty"` // bytes
}

// unsetSsthresh is TCP_INFINITE_SSTHRESH. unsetRTT is Linux's min RTT before the first sample.
const (
	unsetSsthresh = math.MaxInt32
	unsetRTT      = math.MaxUint32
)

func micros(d time.Duration) *int64 { v := d.Microseconds(); return &v }

// newTCPInfo converts a sample. mss is in bytes, 0 if unknown.
func newTCPInfo(s *transfer.Sample, mss int) *TCPInfo {
	i := &TCPInfo{ElapsedTime: s.At.Microseconds()}
	if s.Have&transfer.HaveRTT != 0 {
		i.RTT = micros(s.RTT)
		i.RTTVar = micros(s.RTTVar)
	}
	if s.Have&transfer.HaveMinRTT != 0 {
		i.MinRTT = micros(s.MinRTT)
	}
	if s.Have&transfer.HaveLimits != 0 {
		i.BusyTime = micros(s.Busy)
		i.RWndLimited = micros(s.RwndLimited)
		i.SndBufLimited = micros(s.SndbufLimited)
	}
	if s.Have&transfer.HaveAcked != 0 {
		i.BytesAcked = &s.Acked
		i.BytesSent = &s.Sent
	}
	if s.Have&transfer.HaveReceived != 0 {
		i.BytesReceived = &s.Received
	}
	if s.Have&transfer.HaveRetrans != 0 {
		i.BytesRetrans = &s.RetransmittedBytes
		i.TotalRetrans = &s.Retransmitted
	}
	if s.Have&transfer.HaveNotSent != 0 {
		i.NotsentBytes = &s.NotSent
	}
	if s.Have&transfer.HaveSendWnd != 0 {
		i.SndWnd = &s.SendWnd
	}
	if s.Have&transfer.HaveRate != 0 {
		rate := int64(s.DeliveryBps / 8)
		i.DeliveryRate = &rate
	}
	if mss > 0 && s.Have&(transfer.HaveCwnd|transfer.HaveInFlight) == transfer.HaveCwnd|transfer.HaveInFlight {
		size := int64(mss)
		cwnd := s.Cwnd / int64(mss)
		threshold := s.Ssthresh / int64(mss)
		unacked := s.InFlight / int64(mss)
		if s.Ssthresh == 0 {
			threshold = unsetSsthresh
		}
		i.SndMSS = &size
		i.SndCwnd = &cwnd
		i.SndSsThresh = &threshold
		i.Unacked = &unacked
	}
	return i
}

// assumedMSS is used for far ends that do not send their MSS: Ethernet's, with timestamps.
const assumedMSS = 1448

// sample converts the counts into a sample of the far end.
func (i *TCPInfo) sample() transfer.Sample {
	s := transfer.Sample{At: time.Duration(i.ElapsedTime) * time.Microsecond}
	span := func(v *int64) time.Duration { return time.Duration(value(v)) * time.Microsecond }
	have := func(f transfer.Fields, all ...*int64) bool {
		for _, one := range all {
			if one == nil {
				return false
			}
		}
		s.Have |= f
		return true
	}
	mss := value(i.SndMSS)
	if mss <= 0 {
		mss = assumedMSS
	}
	if value(i.RTT) > 0 && have(transfer.HaveRTT, i.RTT) {
		s.RTT = span(i.RTT)
		s.RTTVar = span(i.RTTVar)
	}
	if least := value(i.MinRTT); least > 0 && least < unsetRTT && have(transfer.HaveMinRTT) {
		s.MinRTT = span(i.MinRTT)
	}
	if have(transfer.HaveLimits, i.BusyTime, i.RWndLimited, i.SndBufLimited) {
		s.Busy = span(i.BusyTime)
		s.RwndLimited = span(i.RWndLimited)
		s.SndbufLimited = span(i.SndBufLimited)
	}
	if have(transfer.HaveAcked, i.BytesAcked) {
		s.Sent = value(i.BytesSent)
		s.Acked = *i.BytesAcked
	}
	if have(transfer.HaveReceived, i.BytesReceived) {
		s.Received = *i.BytesReceived
	}
	if have(transfer.HaveRetrans, i.BytesRetrans) {
		s.RetransmittedBytes = *i.BytesRetrans
		s.Retransmitted = (*i.BytesRetrans + mss - 1) / mss
	}
	if i.TotalRetrans != nil && have(transfer.HaveRetrans) {
		s.Retransmitted = *i.TotalRetrans
	}
	if have(transfer.HaveNotSent, i.NotsentBytes) {
		s.NotSent = *i.NotsentBytes
	}
	if value(i.SndWnd) > 0 && have(transfer.HaveSendWnd, i.SndWnd) {
		s.SendWnd = *i.SndWnd
	}
	if have(transfer.HaveCwnd, i.SndCwnd) {
		s.Cwnd = *i.SndCwnd * mss
		if t := value(i.SndSsThresh); t > 0 && t < unsetSsthresh {
			s.Ssthresh = t * mss
		}
	}
	if have(transfer.HaveInFlight, i.Unacked) {
		s.InFlight = *i.Unacked * mss
	}
	return s
}

func value(v *int64) int64 {
	if v == nil {
		return 0
	}
	return *v
}

// decode parses a measurement and ignores unknown keys.
func decode(text []byte) (*Measurement, error) {
	m := &Measurement{}
	if len(text) > maxText {
		return nil, fmt.Errorf("a measurement of %d bytes, more than %d", len(text), maxText)
	}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("a measurement that is no JSON: %w", err)
	}
	return m, nil
}
