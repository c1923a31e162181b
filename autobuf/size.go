package autobuf

// forcedMax is the limit of buffers, in bytes, with a privilege that exceeds the system's limit.
const forcedMax = 1 << 30

// minBuffer is the smallest granted buffer, in bytes, that a budget leaves a connection.
const minBuffer = 32 << 10

// buffer is the send or the receive buffer of a connection.
type buffer struct {
	granted int  // the largest size in bytes, as getsockopt returns it; charged to the budget
	fixed   int  // requested with SO_SNDBUF or SO_RCVBUF; 0: automatic
	atMax   bool // the system granted no more on request
}

// fixedSize returns the size to request for a window, or 0 if the automatic buffer reaches it. Automatic buffers use
// memory only on demand, and a request switches them off permanently.
func fixedSize(window, automatic, limit, factor int) int {
	if factor*window <= automatic || limit <= automatic {
		return 0
	}
	return min(window, limit/factor)
}

// shrink limits the buffer to the bytes that the budget gave.
func (b *buffer) shrink(given, factor int) {
	if given < b.granted {
		b.granted = given
		b.fixed = given / factor
	}
}

// charge charges the budget with the largest size of both buffers. It shrinks them if the budget has less.
func (t *tuner) charge() error {
	for _, b := range []*buffer{&t.send, &t.receive} {
		if b.fixed > 0 {
			b.granted = b.fixed * t.limits.Factor
		}
	}
	budget := t.cfg.Budget
	if budget == nil {
		return nil
	}
	want := t.send.granted + t.receive.granted
	given := budget.take(want, min(want, 2*minBuffer))
	if given == 0 {
		return ErrBudget
	}
	send := int(float64(given) * float64(t.send.granted) / float64(want))
	send = max(send, min(minBuffer, given/2))
	t.send.shrink(send, t.limits.Factor)
	t.receive.shrink(given-t.send.granted, t.limits.Factor)
	budget.release(given - t.send.granted - t.receive.granted)
	return nil
}

// tooSmall reports whether a connection could use a larger buffer. useful is the payload in bytes that it could keep in
// flight, granted the present size. An automatic buffer is not too small before it is near its maximum.
func (b *buffer) tooSmall(useful, granted, automatic, factor int) bool {
	if b.fixed == 0 && granted < automatic/10*9 {
		return false
	}
	return useful > granted/factor/10*7
}
