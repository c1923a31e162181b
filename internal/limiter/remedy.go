package limiter

// Remedy is one sentence of what to change about a verdict's limiter, "" where nothing
// follows from it.
func Remedy(v Verdict) string {
	switch v.Limiter {
	case Application:
		return "have the sending program write sooner and more at a time; the network has room"
	case SendBuffer:
		return "give the sender a larger send buffer, or leave SO_SNDBUF alone so that the system sizes it"
	case ReceiverWindow:
		return receiverWindowRemedy(v.Subtype)
	case ReceiverApplication:
		return "have the receiving program read faster; a larger window only delays the stop"
	case Congestion:
		if v.Subtype == Policer {
			return "send just below the policed rate (pacing), or have the policer replaced by a shaper"
		}
		return "find what loses packets; until then try another congestion control (bbr) or several connections"
	case Bottleneck:
		return "nothing to tune: the link is full, only a faster one or less data helps"
	case LocalQueue:
		return "raise or remove the shaper on the sending host (tc qdisc show), or look at its interface's speed"
	case AckPath:
		return "make room on the way back: a faster line there, less of other traffic, or a queue that lets acknowledgements pass (fq_codel, cake)"
	case SlowStart:
		return "keep the connection open and reuse it: short transfers never reach the path's rate"
	case NagleDelayedAck:
		return "set TCP_NODELAY, or write each request in one piece"
	case MTUBlackHole:
		return "lower the MTU or the MSS, let ICMP \"too big\" through, or switch on net.ipv4.tcp_mtu_probing"
	case Pacing:
		return "raise the pacing rate that was set on the socket (SO_MAX_PACING_RATE)"
	case CPU:
		return "use larger writes, fewer copies or more threads: a processor core is what is full"
	}
	return ""
}

func receiverWindowRemedy(subtype string) string {
	switch subtype {
	case Unscaled:
		return "switch window scaling on at both ends (net.ipv4.tcp_window_scaling), or find the middlebox that strips the option"
	case Fixed:
		return "raise the receiver's SO_RCVBUF, or do not set it so that the system sizes it"
	case AutotuneGrowing:
		return "let the transfer run longer, or have the receiver start with a larger buffer (the second value of net.ipv4.tcp_rmem)"
	}
	return "raise the ceiling of the receiver's automatic buffer (the third value of net.ipv4.tcp_rmem)"
}
