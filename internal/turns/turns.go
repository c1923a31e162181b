// Package turns splits the segments of a connection into turns and finds the causes of their waits.
//
// A turn is one request and its response. It begins with the client's first byte of data after the server's, or with
// the SYN, and ends with the server's last byte before the client's next. Each moment of a turn belongs to one Stage
// (where in the exchange it passed) and to one Cause; together they add up to the turn's duration. Time without a known
// cause is Unknown and is never spread over the others. A stall is a silence inside a turn in which the
// transport owed the next packet.
//
// No payload is read. Times are nanoseconds, sizes bytes of payload.
package turns

// Stage is where in the exchange time passed.
type Stage uint8

const (
	Connect  Stage = iota // from the SYN to the client's acknowledgement of the SYN-ACK
	TLS                   // the handshake above TCP, until the first request can be sent
	Request               // until the last byte of the request reached the server
	Thinking              // until the server sent the first byte of the response, and its pauses within the response
	Response              // until the last byte of the response reached the client
	Stages
)

var stageNames = [Stages]string{"connect", "tls", "request", "thinking", "response"}

func (s Stage) String() string { return stageNames[s] }

// Cause is the reason why time passed.
type Cause uint8

const (
	Propagation    Cause = iota // round trips of the empty path: one a turn, one for the handshake
	Rounds                      // waits for acknowledgements while the congestion window was full: slow start
	Wire                        // segments of one message that follow each other
	Queue                       // delay above the least, by the sender's timestamps
	LostSYN                     // until a SYN or a SYN-ACK was retransmitted
	FastRetransmit              // until a retransmission that acknowledgements caused
	TailLossProbe               // until a retransmission of the last segment by the first timer (RFC 8985, 7)
	Timeout                     // until a retransmission by the retransmission timer (RFC 6298)
	WindowProbe                 // a closed window that opened only in the answer to a probe
	DelayedAck                  // a small segment waited for an acknowledgement that was itself delayed
	Nagle                       // a small segment waited for an acknowledgement that was not (RFC 9293, 3.7.4)
	ReceiveWindow               // the receive window had no room for a segment
	ZeroWindow                  // the receive window was closed: the reader was late
	Server                      // the server's program
	Client                      // the client's program, between two pieces of a request
	Backlog                     // earlier requests had no response yet, and no connection was free
	FirstByte                   // the response's first byte: the server's program, a queue, or a retransmission of it
	Unknown
	Causes
)

var causeNames = [Causes]string{"propagation", "rounds", "wire", "queue", "lost-syn", "fast-retransmit",
	"tail-loss-probe", "timeout", "window-probe", "delayed-ack", "nagle", "receive-window", "zero-window", "server",
	"client", "backlog", "first-byte", "unknown"}

func (c Cause) String() string { return causeNames[c] }

// StallNames returns the names of the kinds of stalls.
func StallNames() (all []string) {
	for c := range Causes {
		if c.stalls() {
			all = append(all, c.String())
		}
	}
	return all
}

// stalls reports whether a long wait for c is a stall: the transport owed the next packet.
func (c Cause) stalls() bool { return c >= LostSYN && c <= Nagle }

// Turn is one request and its response.
type Turn struct {
	Start, Duration  int64 // the client's times; Start counts from the connection's first segment
	First, Last      int64 // numbers of the first and the last packet at the tap (Packet.Number)
	Time             Times
	LostBeforeTheTap bool // some of its packets never reached the tap
}

// Times are nanoseconds by stage and cause.
type Times [Stages][Causes]int64

// Sum returns the time of all stages and causes.
func (t *Times) Sum() (sum int64) {
	for s := range t {
		for _, d := range t[s] {
			sum += d
		}
	}
	return sum
}

// Of returns the time of a cause in all stages.
func (t *Times) Of(c Cause) (sum int64) {
	for s := range t {
		sum += t[s][c]
	}
	return sum
}

// Worst returns the cause of most of the time, and that time. Propagation is no candidate.
func (t *Times) Worst() (worst Cause, time int64) {
	worst = Unknown
	for c := range Causes {
		if d := t.Of(c); c != Propagation && d > time {
			worst = c
			time = d
		}
	}
	return worst, time
}

// Packet is one TCP segment as a tap saw it. Packets come in the order of their times.
type Packet struct {
	At         int64 // nanoseconds since the connection's first segment
	Number     int64 // in the capture
	FromClient bool
	Flags      Flags
	Seq, Ack   uint32
	Payload    uint32
	Window     int64 // bytes; scaled, except in a SYN
	MSS        int64 // of a SYN; 0: not known
	TSVal      uint32
	IPID       uint16
	SACK       uint8 // blocks
	DSACK      bool  // the first block repeats acknowledged data (RFC 2883)
	// Repair is the cause of a retransmission by its sender's own state: FastRetransmit, TailLossProbe or Timeout; 0:
	// not known, as in captures.
	Repair Cause
}

// Flags are the TCP header's control bits and two facts of a segment.
type Flags uint8

const (
	FIN Flags = 1 << iota
	SYN
	RST
	PSH
	ACK
	_
	Timestamps // TSVal is known
	IPv4       // IPID is known

	TCPFlags = FIN | SYN | RST | PSH | ACK
)
