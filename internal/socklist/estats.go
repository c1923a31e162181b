package socklist

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Windows' extended statistics of a connection, the groups of RFC 4898 (tcpestats.h, 64-bit Windows). Times are
// milliseconds, sizes bytes.
type (
	estatsData struct {
		DataBytesOut, DataSegsOut, DataBytesIn, DataSegsIn, SegsOut, SegsIn uint64
		SoftErrors, SoftErrorReason, SndUna, SndNxt, SndMax                 uint32
		ThruBytesAcked                                                      uint64
		RcvNxt                                                              uint32
		ThruBytesReceived                                                   uint64
	}

	// limited is one of the three states that a sender is in (tcpEStatsPerfSndLim*).
	limited struct {
		Trans, Time uint32
		Bytes       uint64
	}

	// estatsCongestion has three states: limited by the peer's window, by the congestion window, or by neither. In the
	// last one the program or the send buffer limits, or nothing is to be sent.
	estatsCongestion struct {
		Window, Network, Sender               limited
		SlowStart, CongAvoid, OtherReductions uint32
		CurCwnd, MaxSsCwnd, MaxCaCwnd         uint32
		CurSsthresh, MaxSsthresh, MinSsthresh uint32
	}

	estatsPath struct {
		FastRetran, Timeouts, SubsequentTimeouts, CurTimeoutCount, AbruptTimeouts uint32
		PktsRetrans, BytesRetrans                                                 uint32
		DupAcksIn, SacksRcvd, SackBlocksRcvd, CongSignals                         uint32
		PreCongSumCwnd, PreCongSumRtt, PostCongSumRtt, PostCongCountRtt           uint32
		EcnSignals, EceRcvd, SendStall, QuenchRcvd, RetranThresh                  uint32
		SndDupAckEpisodes, SumBytesReordered, NonRecovDa, NonRecovDaEpisodes      uint32
		AckAfterFr, DsackDups                                                     uint32
		SampleRtt, SmoothedRtt, RttVar, MaxRtt, MinRtt, SumRtt, CountRtt          uint32
		CurRto, MaxRto, MinRto, CurMss, MaxMss, MinMss, SpuriousRtoDetections     uint32
	}

	estatsBuffer struct {
		CurRetxQueue, MaxRetxQueue, CurAppWQueue, MaxAppWQueue uint64
	}

	estatsReceiver struct {
		CurRwinSent, MaxRwinSent, MinRwinSent, LimRwin, DupAckEpisodes, DupAcksOut uint32
		CeRcvd, EcnSent, EcnNoncesRcvd, CurReasmQueue, MaxReasmQueue               uint32
		CurAppRQueue, MaxAppRQueue                                                 uint64
		WinScaleSent                                                               uint8
	}

	estatsPeer struct {
		CurRwinRcvd, MaxRwinRcvd, MinRwinRcvd uint32
		WinScaleRcvd                          uint8
	}
)

// estats is all that is asked of a connection.
type estats struct {
	data       estatsData
	congestion estatsCongestion
	path       estatsPath
	buffer     estatsBuffer
	receiver   estatsReceiver
	peer       estatsPeer
}

// known returns a number of these statistics, 0 where it was not sampled yet.
func known(n uint32) int64 {
	if n == 1<<32-1 {
		return 0
	}
	return int64(n)
}

func millis(n uint32) time.Duration { return time.Duration(known(n)) * time.Millisecond }

// scale returns a window's shift; -1 for a peer that does not scale.
func scale(n uint8) int {
	if n > 14 {
		return -1
	}
	return int(n)
}

// fill converts them to a Sample. Their counter of retransmitted bytes has 32 bits; resent is the full one.
func (e *estats) fill(s *Socket, resent int64) {
	waits := int64(e.buffer.CurAppWQueue)
	flies := int64(e.buffer.CurRetxQueue)
	s.Unread = int64(e.receiver.CurAppRQueue)
	s.Unacked = flies + waits
	s.SendQueued = flies + waits
	s.Handshake = transfer.Handshake{MSS: int(known(e.path.CurMss)), SendScale: scale(e.peer.WinScaleRcvd),
		ReceiveScale: scale(e.receiver.WinScaleSent)}
	acked := int64(e.data.ThruBytesAcked)
	s.WindowClock = true
	s.Sample = transfer.Sample{
		Have: transfer.HaveRTT | transfer.HaveMinRTT | transfer.HaveCwnd | transfer.HaveSendWnd | transfer.HaveInFlight |
			transfer.HaveNotSent | transfer.HaveRetrans | transfer.HaveAcked | transfer.HaveReceived | transfer.HaveReceiveWnd,
		RTT: millis(e.path.SmoothedRtt), RTTVar: millis(e.path.RttVar), MinRTT: millis(e.path.MinRtt),
		Cwnd: known(e.congestion.CurCwnd), Ssthresh: known(e.congestion.CurSsthresh), SendWnd: known(e.peer.CurRwinRcvd),
		InFlight: flies, NotSent: waits, RwndLimited: millis(e.congestion.Window.Time),
		Retransmitted: int64(e.path.PktsRetrans), RetransmittedBytes: resent, Timeouts: known(e.path.CurTimeoutCount),
		Acked: acked, Sent: acked + flies + resent, Received: int64(e.data.ThruBytesReceived),
		ReceiveWnd: known(e.receiver.CurRwinSent),
	}
}
