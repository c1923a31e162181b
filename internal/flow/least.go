package flow

// leastRTT finds the least round trip that more than one sample shows. A wrong stamp or a step of the clock makes the
// round trips of one moment too short.
type leastRTT struct {
	lowest    [lowestRounds]int64 // of all rounds, the least first
	n         int8
	rounds    int32
	this      int64 // of the present round
	began     int64
	handshake int64 // 0 unknown
}

const lowestRounds = 5

// add adds a round trip and returns the least that can be relied on, nanoseconds.
func (l *leastRTT) add(rtt, at int64) int64 {
	if l.this == 0 || at-l.began > max(l.this, 1e6) {
		l.close()
		l.began = at
		l.this = rtt
	}
	l.this = min(l.this, rtt)
	return l.supported()
}

// close puts the round into its place.
func (l *leastRTT) close() {
	if l.this == 0 {
		return
	}
	l.rounds++
	if int(l.n) < len(l.lowest) {
		l.n++
	} else if l.this >= l.lowest[l.n-1] {
		return
	}
	i := l.n - 1
	for ; i > 0 && l.lowest[i-1] > l.this; i-- {
		l.lowest[i] = l.lowest[i-1]
	}
	l.lowest[i] = l.this
}

// supported is the least round trip that two more rounds come near. As long as there are
// few, any is believed; and the handshake's always is, since no data was in its way.
func (l *leastRTT) supported() int64 {
	if least := l.data(); l.handshake == 0 || least > 0 && least < l.handshake {
		return least
	}
	return l.handshake
}

// data is the same without the handshake; 0 unknown.
func (l *leastRTT) data() int64 {
	const few, others = 20, 2
	least := l.this
	if l.n > 0 {
		least = min(least, l.lowest[0])
	}
	if l.rounds >= few {
		least = l.lowest[others]
		for i := 0; i+others < int(l.n); i++ {
			if l.lowest[i+others] <= l.lowest[i]+l.lowest[i]/5+100e3 {
				least = l.lowest[i]
				break
			}
		}
	}
	return least
}
