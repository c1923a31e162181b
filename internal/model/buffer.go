package model

import "math/bits"

// Linux counts memory, not payload, against a socket's buffers. These are its sizes on
// 64-bit machines with a 1500-byte MTU.
const (
	receiveTruesize = 2304 // a received full segment: page fragment, skb_shared_info, sk_buff
	largestSend     = 65536 - 1 - 256
)

// LinuxGranted is what getsockopt tells of a buffer that was asked for: twice as much
// (socket(7)), no more than twice the ceiling net.core.[rw]mem_max, where one is known.
func LinuxGranted(requested, ceiling int) int {
	if ceiling > 0 {
		requested = min(requested, ceiling)
	}
	return 2 * requested
}

// LinuxReceiveWindow is the window in bytes that a granted receive buffer ends up
// advertising to a sender of full segments of mss bytes. Since Linux 6.6 the window is
// the share of a buffer that the payload of the first full segment had of its memory, in
// 256ths (tcp_measure_rcv_mss, tcp_win_from_space), and stops growing when one more
// segment would not fit (tcp_grow_window). A window scale that was chosen for half of
// the buffer (tcp_select_initial_window) may bound it first.
func LinuxReceiveWindow(granted, mss int) int {
	share := min(mss*256/receiveTruesize, 255)
	window := (granted - receiveTruesize) * share / 256
	shift := max(bits.Len(uint(max(granted/2, 0)))-bits.Len(MaxUnscaled), 0)
	if shift > MaxScale {
		shift = MaxScale
	}
	window = min(window, MaxUnscaled<<shift)
	return max(window/mss*mss, min(mss, granted))
}

// LinuxBufferFor is the SO_RCVBUF in bytes, an even number of which Linux grants twice as
// much, that ends up advertising at least window bytes to a sender of full segments of mss
// bytes: LinuxReceiveWindow the other way round, without its whole segments.
func LinuxBufferFor(window, mss int) int {
	share := min(mss*256/receiveTruesize, 255)
	granted := (window*256+share-1)/share + receiveTruesize
	return (granted + 3) / 4 * 2
}

// LinuxInFlight is how many bytes a granted send buffer keeps unacknowledged on average,
// where each write is sent at once to its end: TCP_NODELAY, or writes of whole segments.
// A writer that found the buffer full is woken when a third of it is free
// (sk_stream_write_space), each sk_buff costs memory besides its payload, and the last
// write overshoots by its size, up to 64 KB. The two factors are fitted to what Linux
// 6.18 had in flight for buffers of 16 to 256 KiB and writes of 1448 bytes to 64 KiB.
// For all other writes see LinuxOverrun.
func LinuxInFlight(granted, write int) int {
	const filled, overshoot = 0.58, 0.65
	if write <= 0 || write > largestSend {
		write = largestSend
	}
	return int(filled*float64(granted) + overshoot*float64(write))
}

// LinuxOverrun is how many bytes a granted send buffer keeps unacknowledged on average
// where writes end in part segments, on a path that bdp bytes fill, with a queue of so
// many bytes. The buffer bounds little then: what is left of a write waits for its
// segment to fill (Nagle), and Linux adds to a waiting segment without looking at the
// buffer again (tcp_sendmsg_locked asks sk_stream_memory_free for a new one only). So
// the writer runs on to the end of the congestion window, in one burst, and then waits
// until the buffer is two thirds full, nearly a round trip and the burst's own time on
// the line later. How large bursts get depends on the queue that has to take them: this
// is fitted to paths of 5 to 100 Mbit/s, 50 to 200 ms and queues of 0.3 to 3 BDPs, within
// about a third, on Linux 6.18.
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
