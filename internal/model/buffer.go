package model

// Linux counts memory, not payload, against a socket's buffers. These are its sizes on
// 64-bit machines with a 1500-byte MTU.
const (
	receiveTruesize = 2304 // a received full segment: page fragment, skb_shared_info, sk_buff
	sendOverhead    = 832  // of each sk_buff in the write queue besides its payload
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
// segment would not fit (tcp_grow_window).
func LinuxReceiveWindow(granted, mss int) int {
	share := min(mss*256/receiveTruesize, 255)
	window := (granted - receiveTruesize) * share / 256
	return max(window/mss*mss, min(mss, granted))
}

// LinuxInFlight is how many bytes a granted send buffer keeps unacknowledged, where each
// write ends in a segment that is sent at once: TCP_NODELAY, or writes of whole
// segments. Each write is a sk_buff of its own, up to 64 KB.
//
// Else the buffer bounds little: what is left of a write waits for its segment to fill
// (Nagle), and Linux adds to a waiting segment without looking at the buffer again
// (tcp_sendmsg_locked checks sk_stream_memory_free for a new one only).
func LinuxInFlight(granted, write int) int {
	if write <= 0 || write > largestSend {
		write = largestSend
	}
	return max(int(float64(granted)*float64(write)/float64(write+sendOverhead)), write)
}
