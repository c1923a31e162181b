package model

import "math/bits"

// Linux charges memory, not payload, to a socket's buffers. These are its sizes on 64-bit machines with an MTU of
// 1500 bytes.
const (
	receiveTruesize = 2304 // a received full segment: page fragment, skb_shared_info, sk_buff
	defaultMSS      = 536  // TCP_MSS_DEFAULT: segments up to this size leave the payload's share at its default
	largestSend     = 65536 - 1 - 256
	sendOverhead    = 768 // an sk_buff to send without its payload: the struct, its head, skb_shared_info
)

// LinuxBufferFactor is the size of a Linux buffer relative to the bytes that it must keep in flight. Before Linux 6.6
// half of a receive buffer is window (LinuxScaledWindow, tcp_adv_win_scale 1), since then more; of a send buffer two
// thirds are in flight (LinuxAutomaticInFlight).
const LinuxBufferFactor = 2

// LinuxGranted returns what getsockopt reports for a requested buffer: twice the request (socket(7)), at most twice
// the ceiling net.core.[rw]mem_max if known.
func LinuxGranted(requested, ceiling int) int {
	if ceiling > 0 {
		requested = min(requested, ceiling)
	}
	return 2 * requested
}

// LinuxScaledWindow returns the largest window, in bytes, of a granted receive buffer before Linux 6.6, where
// net.ipv4.tcp_adv_win_scale splits it (tcp_win_from_space). Linux 6.6 and later: LinuxReceiveWindow.
func LinuxScaledWindow(granted, advWinScale int) int {
	if advWinScale <= 0 {
		return granted >> min(-advWinScale, 31)
	}
	return granted - granted>>min(advWinScale, 31)
}

// LinuxReceiveWindow returns the final advertised window, in bytes, of a granted receive buffer for full segments
// of mss bytes. Since Linux 6.6 the window is the payload's share of the first full segment's memory, in 256ths
// (tcp_measure_rcv_mss, tcp_win_from_space). It stops growing when one more segment would not fit
// (tcp_grow_window). The initial window, half of the buffer, is granted without growing: two segments of it stay
// (seen with Linux 6.18), all of it up to an MSS of 536 bytes. The window scale, chosen for half of the buffer
// (tcp_select_initial_window), may limit it further.
func LinuxReceiveWindow(granted, mss int) int {
	initial := granted / 2
	if mss > defaultMSS {
		initial = min(initial, 2*mss)
	}
	window := max((granted-receiveTruesize)*receiveShare(mss)/256, initial)
	shift := max(bits.Len(uint(max(granted/2, 0)))-bits.Len(MaxUnscaled), 0)
	if shift > MaxScale {
		shift = MaxScale
	}
	window = min(window, MaxUnscaled<<shift)
	return max(window/mss*mss, min(mss, granted))
}

// LinuxHalvedWindow returns the window of a granted receive buffer after the sender has halved a
// window of at most two segments (tcp_bound_to_half_wnd). Half segments take as much memory as
// whole ones, so fewer of them fit (__tcp_select_window rounds down to the size of what arrives).
// It is at least one of them.
func LinuxHalvedWindow(granted, half int) int {
	return max(granted*receiveShare(half)/256/half, 1) * half
}

// receiveShare returns the payload's share of a received segment's memory, in 256ths.
func receiveShare(mss int) int {
	if mss <= defaultMSS {
		return 128 // TCP_DEFAULT_SCALING_RATIO
	}
	return min(mss*256/receiveTruesize, 255)
}

// LinuxBufferFor returns the SO_RCVBUF in bytes, an even number. Its final advertised window is at least window
// bytes for full segments of mss bytes. It inverts LinuxReceiveWindow without rounding to whole segments.
func LinuxBufferFor(window, mss int) int {
	share := receiveShare(mss)
	granted := (window*256+share-1)/share + receiveTruesize
	return (granted + 3) / 4 * 2
}

// LinuxInFlight returns the mean unacknowledged bytes of a granted send buffer when each write is sent completely
// at once: with TCP_NODELAY, or in whole segments. A blocked writer wakes up when a third of the buffer is free
// (sk_stream_write_space). Each sk_buff adds overhead, and the last write overshoots by up to 64 KB. Both factors
// are fitted to Linux 6.18 with buffers of 16 to 256 KiB and writes of 1448 bytes to 64 KiB. For other writes see
// LinuxOverrun.
func LinuxInFlight(granted, write int) int {
	const filled, overshoot = 0.58, 0.65
	if write <= 0 || write > largestSend {
		write = largestSend
	}
	return int(filled*float64(granted) + overshoot*float64(write))
}

// LinuxAutomaticInFlight returns the mean unacknowledged bytes of the automatic send buffer with the given largest size
// (net.ipv4.tcp_wmem, third number), for writes of 64 KiB or more or with TCP_NODELAY. The buffer grows with cwnd to
// about six times its payload (tcp_sndbuf_expand: 2 × cwnd × the memory of a segment), so only the largest size limits.
// A writer that finds it full wakes up when a third is free (sk_stream_write_space). The last third of each round
// trip's ACKs frees too little to wake it once more. Two thirds of the buffer stay in flight, and up to three sk_buffs
// of 64 KB by which the last writes exceed it. No unsent data waits, since cwnd has outgrown the buffer. Fitted to
// Linux 6.18 with 0.25 to 8 MiB at 1 Gbit/s and 100 ms.
func LinuxAutomaticInFlight(largest int) int {
	const sustained = 2.0 / 3 * largestSend / (largestSend + sendOverhead)
	return int(sustained*float64(largest)) + min(3*largestSend, largest/2)
}

// UnsplitBps is the link rate in bit/s from which large writes no longer overrun a send buffer (LinuxOverrun): with a
// cwnd of two BDPs, paced at 1.2 × cwnd / RTT, sk_buffs of 64 KB are then sent whole (tcp_tso_autosize: 1 ms of the
// pacing rate), and no waiting rest is left to extend.
const UnsplitBps = largestSend * 8 * 1024 / 1.2 / 2

// LinuxOverrun returns the mean unacknowledged bytes of a granted send buffer when writes end in partial segments.
// bdp and queue describe the path in bytes. The buffer hardly limits such writes: the rest of a write waits for a
// full segment (Nagle), and Linux extends a waiting segment without checking the buffer (tcp_sendmsg_locked calls
// sk_stream_memory_free for new ones only). The writer fills the congestion window in one burst, then waits until
// the buffer is two thirds full, almost one RTT later. The burst size depends on the queue. Fitted within about a
// third to Linux 6.18 on paths of 5 to 100 Mbit/s, 50 to 200 ms and queues of 0.3 to 3 BDP.
func LinuxOverrun(granted, bdp, queue float64) float64 {
	if bdp <= 0 {
		return granted
	}
	const wakes = 2.0 / 3
	depth := queue / bdp
	burst := depth / (1 + depth/4)
	left := 1 + burst - wakes*granted/bdp
	if burst >= left {
		return bdp
	}
	return burst / left * bdp
}
