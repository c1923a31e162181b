package flow

// marksEcho is how the ends agreed to report congestion marks (ECN).
type marksEcho uint8

const (
	marksUnused  marksEcho = iota // not agreed on, or the handshake was not captured
	marksAsked                    // ECE until the sender responds with CWR (RFC 3168)
	marksCounted                  // a counter in AE, CWR and ECE (RFC 9768)
)

const markBits = AE | CWR | ECE

// agreeOnMarks takes the bits of a SYN and of its SYN-ACK.
func agreeOnMarks(syn, synAck Flags) marksEcho {
	syn &= markBits
	synAck &= markBits
	switch {
	case syn == 0, synAck == 0, synAck == markBits: // the last is an echo of all bits (RFC 3168, 6.1.1.1)
		return marksUnused
	case synAck == ECE:
		return marksAsked
	case syn == markBits && synAck != ECE|AE:
		return marksCounted
	}
	return marksUnused
}

// marking follows the marks of a direction's data.
type marking struct {
	// Marks counts the round trips in which an acknowledgement reported new marks. A sender reduces its congestion
	// window at most once in each.
	Marks    int64
	markedTo int64 // the highest byte sent when they were reported last
	counter  Flags // of the last acknowledgement, with ACK; 0 before the first
}

// reported takes the bits of an acknowledgement of the data up to ack.
func (d *Direction) reported(flags Flags, ack int64) {
	if flags&SYN != 0 {
		return
	}
	switch d.conn.marksEcho {
	case marksUnused:
		return
	case marksAsked:
		if flags&ECE == 0 {
			return
		}
	case marksCounted:
		before := d.counter
		d.counter = flags&markBits | ACK
		if before == 0 || before == d.counter {
			return
		}
	}
	if ack <= d.markedTo {
		return
	}
	d.markedTo = d.high
	d.Marks++
	d.cur.Marks++
}
