package autobuf

// forced is the ceiling where privilege passes the system's.
const forced = 1 << 30

// least is the smallest buffer that a budget leaves a connection, as granted.
const least = 32 << 10

// half is one direction's buffer.
type half struct {
	granted int  // at most, in bytes as getsockopt tells them; charged to the budget
	fixed   int  // what SO_SNDBUF or SO_RCVBUF is asked for; 0: the system sizes it
	full    bool // asked for more, the system gave none
}

// fixed is the request that gives a window, or 0 where the system's own sizing reaches
// as far: automatic buffers take memory only as they need it and fixed ones switch that
// off for good.
func fixed(window, automatic, most, factor int) int {
	if factor*window <= automatic || most <= automatic {
		return 0
	}
	return min(window, most/factor)
}

// bound makes a buffer that fits what the budget gave.
func (h *half) bound(given, factor int) {
	if given < h.granted {
		h.granted = given
		h.fixed = given / factor
	}
}

// charge takes what both buffers can grow to from the budget. Where it has less, the
// buffers are made as small as what there is.
func (t *tuner) charge() error {
	for _, h := range []*half{&t.send, &t.receive} {
		if h.fixed > 0 {
			h.granted = h.fixed * t.limits.Factor
		}
	}
	b := t.cfg.Budget
	if b == nil {
		return nil
	}
	want := t.send.granted + t.receive.granted
	given := b.take(want, min(want, 2*least))
	if given == 0 {
		return ErrBudget
	}
	send := int(float64(given) * float64(t.send.granted) / float64(want))
	send = max(send, min(least, given/2))
	t.send.bound(send, t.limits.Factor)
	t.receive.bound(given-t.send.granted, t.limits.Factor)
	b.give(given - t.send.granted - t.receive.granted)
	return nil
}

// outgrown says whether a connection could use more than its buffer holds: useful is
// what it would keep in flight, in bytes of payload, and now the buffer as granted. One
// that the system sizes is not outgrown before it has reached the end of that.
func (h *half) outgrown(useful, now, automatic, factor int) bool {
	if h.fixed == 0 && now < automatic/10*9 {
		return false
	}
	return useful > now/factor/10*7
}
