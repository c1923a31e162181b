package flow

// Clock is where a sender's time went. The clocks are exclusive: each moment between the
// first payload byte and the last acknowledgement runs on one of them.
type Clock uint8

const (
	Busy       Clock = iota // data outstanding, nothing below explains the wait
	Full                    // the receiver's window leaves no room, and it is as large as it gets
	Closed                  // the window leaves no room and has shrunk: the receiving program does not read
	Recovery                // from the first sign of a loss until what was outstanding then is acknowledged
	Idle                    // nothing outstanding, window open, nothing sent
	NagleWait               // a small segment waited for an acknowledgement that was itself delayed
	SlowStart               // rounds in which the outstanding data still multiplied
	AppLimited              // far less outstanding than the sender had a round before, without a loss between
	BlackHole               // one large segment lost again and again
	AckTimer                // all outstanding data waited for a delayed ACK's timer, and new data followed at once
	clocks
)

// Direction is the data that one end sent. Bytes outstanding and the window are kept as
// the sender saw them: acknowledgements count when they must have reached it, the loop
// from the tap through the sender later.
type Direction struct {
	From, To Endpoint

	First, Last int64 // first payload byte and last acknowledgement, from the connection's start

	Bytes         int64 // payload without repetitions
	Retransmitted int64 // segments
	Repeated      int64 // bytes of retransmissions whose original was seen too
	Replaced      int64 // bytes of retransmissions whose original was not: lost before the tap, or by the capture
	Spurious      int64 // retransmissions that the receiver says it did not need
	Unheard       int64 // of the Spurious those after a timeout: acknowledgements were lost beyond the tap
	OutOfOrder    int64
	Damaged       int64 // segments with a wrong TCP checksum, of packets that were captured whole
	Unseen        int64 // bytes acknowledged that were never captured
	Missing       int64 // bytes passed over that never came, and that no acknowledgement speaks of either
	Probes        int64 // keep-alives and zero-window probes
	ZeroWindows   int64 // acknowledgements that closed the window
	SmallSegments int64 // that end in less than a full one
	Timeouts      int64 // retransmissions after a silence of 200 ms and two round trips
	LossEvents    int64 // loss recoveries begun
	TooBig        int   // ICMP messages naming this direction's segments
	RouterMTU     int   // from them; 0 unknown
	Wanted        int64 // bytes that the tap never saw and the receiver still asked for: lost before the tap
	ScaleRaise    int64 // time at which the inferred window scale was last raised
	LoopMin       int64 // the part of RTTMin between tap and sender; the rest is beyond the tap
	LoopKnown     bool
	LoopFollowed  bool // by timestamps echoed, so that a queue on that part is seen
	ScaleKnown    bool
	NoScale       bool  // the option was not agreed on; a Scale of 0 was not offered
	Pauses        int64 // periods without outstanding data that are longer than the time to answer
	Tails         int64 // pauses that follow less than a full segment: the sender had no more data
	Answered      int64 // rounds that began after the other end had sent payload
	Restarts      int64 // rounds that began with nothing outstanding
	TimerWaits    int64 // waits that the AckTimer clock counted
	Exchanges     int64 // rounds that count in both Answered and Restarts
	Spoken        int64 // rounds during which the other end sent payload of its own

	// Silences is the time, slow start aside, in which nothing was sent for a quarter of a round trip and more while
	// data was outstanding, until new data came. Drained is the part of it that followed a segment below
	// the MSS (the sender had no more data) and a message of the other end since the previous silence.
	Silences, Drained int64

	// UnclearWaits are waits of all outstanding data for its only acknowledgement, which a delayed ACK's timer or a slow
	// line made longer by UnclearWaited, nanoseconds.
	UnclearWaits, UnclearWaited int64
	// LoneTimerWaits are TimerWaits for the only acknowledgement of a block, WindowTimerWaits those with a full window.
	LoneTimerWaits, WindowTimerWaits int64

	PushedIdle int64 // the part of the time in pauses that followed the end of a write
	BackOffs   int64 // pauses twice as long as the one before, with a single segment between them
	// Stalled is the time in which data was outstanding and no retransmission got through, counted in
	// stalls of a second or more. StallFrom and StallTo are the bounds of the longest stall.
	Stalled            int64
	StallFrom, StallTo int64
	// Abandoned is the time to the end of the connection in which the sender, at the tap, did not
	// retransmit data that was not acknowledged; 0: no such case. It is before Last.
	Abandoned int64
	// time of the other end's last packet, if data was still retransmitted to it; 0: no such case
	Silent     int64
	Beyond     int64 // bytes that were sent beyond any right edge of the window that the tap saw
	DataRTTMin int64 // like RTTMin, of data segments only

	Slices []Slice // the direction's time, oldest slice first
	Bursts *Bursts // nil when there were none
	Starts *Starts // nil when there were none
	// Oversized is nil until a segment was longer than the MSS or was repeated.
	Oversized *Oversized
	Blocks    Blocks
	// Spacing is nil before the ninth segment.
	Spacing *Spacing

	IdleRestarts IdleRestarts
	// ReaderPaced is the time on the Busy and AppLimited clocks between two moments at which the receiving program left
	// no room, nanoseconds.
	ReaderPaced int64

	// The fields from here on are needed for every segment.

	Graph    *Graph
	Captured int64 // payload bytes of all segments, repetitions included
	Acked    int64 // bytes acknowledged
	// SACKBlocks counts the receiver's SACK blocks; SACKOutside those that lie outside the window and all that was sent.
	SACKBlocks, SACKOutside int64
	Segments                int64 // with payload, as captured; a super-segment is one
	Acks                    int64 // pure acknowledgements received
	// Acknowledgements are all segments of the other end that acknowledge anything.
	Acknowledgements int64
	MSS              int // the largest payload of one packet: offered less options, or the largest seen
	MaxSegment       int // the largest seen; above MSS it is a super-segment
	Scale            int // shift of the windows the receiver advertises
	WindowMax        int64
	MaxOut           int64 // most bytes outstanding
	RTTMin, RTTMax   int64 // of whole round trips, nanoseconds; 0 unknown
	RTTs             int64
	PastMin, PastSum int64 // the part of the RTTs beyond the tap: the least, and the sum

	conn *Connection
	me   int // the side that sends

	state           Clock
	answered        bool   // the other end sent payload since the last segment
	answeredInRound bool   // the other end sent payload since the round began
	messaged        bool   // the other end sent payload since the last idle period
	base            uint32 // sequence number of position 0

	// All positions are payload bytes from the first one, unwrapped.
	high      int64 // one past the highest byte seen
	before    int64 // bytes in flight when the capture began, which the tap never saw
	una       int64 // first byte not acknowledged, as the sender knows
	acked     int64 // the same, as the tap knows
	edge      int64 // the window's right edge, as the sender knows
	tapEdge   int64
	window    int64 // advertised last, as the sender knows
	at        int64 // the clocks have run until here
	empty     int64 // time with nothing outstanding since the last segment
	lastSent  int64
	lastLen   int64
	pushed    bool  // the last segment ended a write
	owed      int64 // since when nothing got through though something was outstanding
	owedSent  int64 // Retransmitted then
	edgeMost  int64 // the largest right edge that the tap saw
	pause     int64 // the last pause, and how many segments had been sent before it
	pauseAt   int64
	waitedFor int64
	lastDelay int64 // how long the last acknowledgement came after the one before and a round trip, of a timer's length
	unaAt     int64 // when una last rose
	waitedAt  int64
	waitedIn  Clock // that ran meanwhile
	timerFor  int64 // how long the receiver's timer delayed the last acknowledgement
	timerBy   timerBasis
	prompt    int64 // when the last acknowledgement came, 0 if a timer may have delayed it
	reopening
	shut
	block // the data sent since nothing was outstanding

	waiting  acks
	echoed   uint32 // the timestamp that the sender echoed last, and when for the first time
	echoedAt int64
	initial  int64 // the initial congestion window where it can show how long the loop is; 0 unknown
	lag      int64 // how much longer than its delay the loop through the sender takes at present
	sacked   ranges
	passing
	marking
	lostSegments
	round
	slicing
	rtt rttState
}

func (c *Connection) newDirection(s *Segment, from int, at int64) *Direction {
	me := &c.sides[from]
	peer := &c.sides[1-from]
	d := reused(&c.table.spareDirections)
	*d = Direction{From: s.Src, To: s.Dst, First: at, Last: at, conn: c, me: from, base: s.Seq, at: at, state: Busy,
		lastSent: at}
	d.rtt.loop = &me.loop
	d.rtt.delayed = &me.delayed
	d.rtt.back = &peer.delayed
	d.rtt.next = never
	d.Scale, d.ScaleKnown = c.scale(1 - from)
	d.NoScale = d.ScaleKnown && c.unscaled()
	d.MSS = c.mss(from)
	const near = 1 << 26 // of what is missing between the SYN and the first segment
	if first := me.offer.ISN + 1; me.offer.Seen && s.Seq-first < near {
		d.base = first
	} else if peer.have && int32(s.Seq-peer.ack) >= 0 && s.Seq-peer.ack < 1<<24 {
		d.base = peer.ack
		d.before = int64(s.Seq - peer.ack)
	}
	if peer.have {
		d.window = int64(peer.window)
		if peer.scaled {
			d.window <<= d.Scale
		}
		d.edge = d.position(peer.ack) + d.window
	} else {
		d.window = 1 << 40
		d.edge = 1 << 40 // not known: assume room
	}
	d.tapEdge = d.edge
	if points := c.table.cfg.Points; points > 0 {
		c.table.beginGraph(d)
	}
	d.cur = newSlice(at)
	d.round.began = at
	c.seedRTT(d, from)
	return d
}

// mss is the largest payload that a side puts into one packet, 0 where no SYN says.
func (c *Connection) mss(from int) int {
	client := c.ClientOffer()
	server := c.ServerOffer()
	mss := 0
	for _, o := range []Offer{client, server} {
		if o.MSS > 0 && (mss == 0 || o.MSS < mss) {
			mss = o.MSS
		}
	}
	if c.sides[1-from].offer.MSS > 0 {
		mss = c.sides[1-from].offer.MSS
	}
	if mss > 12 && client.Timestamps && server.Timestamps {
		mss -= 12
	}
	return mss
}

func (d *Direction) position(seq uint32) int64 {
	// The nearest position to the highest byte seen.
	return d.high + int64(int32(seq-d.base-uint32(d.high)))
}

// advance runs the clocks until now.
func (d *Direction) advance(now int64) {
	for d.waiting.n > 0 && d.waiting.first().due+d.lag <= now {
		e := d.waiting.pop()
		d.run(e.due + d.lag)
		d.arrive(e)
	}
	d.run(now)
}

func (d *Direction) run(now int64) {
	dt := now - d.at
	if dt <= 0 {
		return
	}
	d.at = now
	out := d.high - d.una
	if out == 0 && d.state == Busy {
		d.empty += dt
		return
	}
	d.cur.Clock[d.state] += dt
	if d.state == Busy || d.state == AppLimited {
		d.reopening.busy += dt
	}
	d.cur.outTime += float64(out) * float64(dt)
	if d.state == Busy {
		d.round.busy += dt
	}
}

// settle chooses the clock that runs from now on.
func (d *Direction) settle() {
	before := d.state
	if d.Graph != nil {
		d.Graph.Outstanding.add(d.at, d.high-d.una)
		d.Graph.Window.add(d.at, d.window)
	}
	out := d.high - d.una
	room := d.edge - d.high
	switch {
	case out > 0 && d.headLost >= 3 && d.stuck():
		d.state = BlackHole
	case out > 0 && d.recovering:
		d.state = Recovery
	case room < d.window/2+1<<(d.Scale&15) && room < d.tight(): // it is never more than that
		d.state = Full
		if 4*d.window < 3*d.WindowMax || d.window == 0 {
			d.state = Closed
		}
	case room < int64(d.MSS) && d.window < d.WindowMax/2: // not a segment fits what the reader left
		d.state = Closed
	case out > 0 && 4*out < 3*d.round.level && d.round.level >= 4*int64(max(d.MSS, 536)):
		d.state = AppLimited
	default:
		d.state = Busy
	}
	d.reopened(before)
}

// tight is how little room keeps a sender waiting: senders do not fill the last few
// segments one by one, nor cut their super-segments.
func (d *Direction) tight() int64 {
	mss := int64(max(d.MSS, 536))
	if d.rtt.delay() > 0 {
		// Away from the sender, the bytes outstanding are an estimate.
		mss = max(mss, d.window/24)
	}
	return max(min(3*mss, d.window/2), int64(1)<<d.Scale, min(int64(d.MaxSegment), d.window/3))
}

func (d *Direction) finish() {
	c := d.conn
	d.TooBig = int(c.tooBig[d.me])
	d.RouterMTU = int(c.routerMTU[d.me])
	for d.waiting.n > 0 {
		d.advance(d.waiting.first().due + d.lag)
	}
	d.advance(d.lastSent)
	d.dropDelayed()
	// Time after the last acknowledgement belongs to no limiter: the program may have been done, and retransmissions
	// after the acknowledgement was lost beyond the tap delivered nothing.
	d.Last = d.at - d.empty - d.needlessTailTime
	d.cur.Clock[Recovery] -= d.needlessTailTime
	d.closeRound()
	d.closeSlice(d.Last)
	d.Bytes = d.high - d.before
	d.Acked = max(d.acked-d.before, 0)
	d.DataRTTMin = d.rtt.least.data()
	if d.abandoned() {
		d.Abandoned = c.now - d.Last
		d.Last = c.now
	} else if d.acked < d.high && d.stalled(d.lastSent) {
		heard := d.conn.sides[1-d.me].heard
		// Data that does not get through is not answered either.
		if d.lastSent-heard >= max(second, 4*d.RTTMin) && d.repeatedAt > heard && d.state != BlackHole {
			d.Silent = max(heard, 1)
		}
	}
	if len(d.gaps) > 0 && d.acked <= d.gaps[0].from && d.conn.sides[1-d.me].heard > d.gaps[0].at {
		d.Wanted = d.gaps.bytes()
	}
	// Of many holes some are forgotten, and their repairs count as repeated.
	d.Missing = max(d.skippedBytes-d.Repeated-d.Wanted, 0)
	d.LoopFollowed = d.echoes()
	d.LoopMin = d.rtt.loopMin
	d.LoopKnown = d.rtt.loopKnown
	d.waiting = acks{}
}
