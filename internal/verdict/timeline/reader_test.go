package timeline

import (
	"container/heap"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// reader is a program that takes piece bytes out of a receive buffer at each interval.
type reader struct {
	rtt, loop int64 // loop: the part of the round trip between the sender and the tap
	segment   int64 // how long the line takes for a full segment
	interval  int64
	buffer    int
	piece     int
	scale     int // of the window
}

type readerEvent struct {
	at        int64
	kind      int // arrival, acknowledgement or read
	pos, edge int
}

const (
	arrival = iota
	acknowledgement
	read
)

type readerEvents []readerEvent

func (e readerEvents) Len() int           { return len(e) }
func (e readerEvents) Less(i, j int) bool { return e[i].at < e[j].at }
func (e readerEvents) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *readerEvents) Push(x any)        { *e = append(*e, x.(readerEvent)) }
func (e *readerEvents) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// judge plays a sender that always has data against the reader.
func (r reader) judge(t *testing.T) Diagnosis {
	t.Helper()
	const mss = 1460
	x := newTape(r.rtt, r.loop)
	x.all[1].Scale = uint8(r.scale)
	var (
		sent, acked, arrived, unread, unacked int
		cwnd, edge, advertised                = 10 * mss, r.buffer, r.buffer
		free                                  = 2 * r.rtt
		all                                   readerEvents
	)
	send := func(now int64) {
		for sent-acked+mss <= cwnd && edge > sent {
			n := min(mss, edge-sent)
			free = max(free, now) + r.segment
			x.data(free+r.loop/2, sent, n, 0)
			sent += n
			heap.Push(&all, readerEvent{at: free + r.rtt/2, kind: arrival, pos: sent})
		}
	}
	acknowledge := func(now int64) {
		unacked = 0
		advertised = max(advertised, arrived+r.buffer-unread)
		window := (advertised - arrived) >> r.scale
		x.ack(now+r.rtt/2-r.loop/2, arrived, 0)
		x.all[len(x.all)-1].Window = uint16(window)
		heap.Push(&all, readerEvent{at: now + r.rtt/2, kind: acknowledgement, pos: arrived, edge: arrived + window<<r.scale})
	}
	heap.Push(&all, readerEvent{at: 2*r.rtt + r.interval, kind: read})
	send(2 * r.rtt)
	for reads := 0; reads < 120; {
		e := heap.Pop(&all).(readerEvent)
		switch e.kind {
		case arrival:
			unread += e.pos - arrived
			arrived = e.pos
			unacked++
			if unacked == 2 || r.buffer-unread < 2*mss {
				acknowledge(e.at)
			}
		case acknowledgement:
			cwnd += max(e.pos-acked, 0)
			acked = max(acked, e.pos)
			edge = max(edge, e.edge)
			send(e.at)
		case read:
			reads++
			unread -= min(unread, r.piece)
			acknowledge(e.at)
			heap.Push(&all, readerEvent{at: e.at + r.interval, kind: read})
		}
	}
	g, _ := x.judge(t)
	return g
}

// The line needs up to two thirds of the interval to deliver a piece, and the reader limits. A tap at the receiver
// estimates the data in flight: one case in ten may stay mixed there.
func TestJudge_SlowReader(t *testing.T) {
	mixed, far := 0, 0
	for _, r := range []reader{
		{buffer: 200_000, piece: 32 << 10, scale: 7}, {buffer: 200_000, piece: 32 << 10, scale: 3},
		{buffer: 200_000, piece: 16 << 10, scale: 7}, {buffer: 400_000, piece: 64 << 10, scale: 4},
	} {
		for _, rtt := range []int64{1, 5, 20, 40} {
			for _, segment := range []int64{12_000, 120_000, 1_200_000} {
				for _, busy := range []int64{20, 45, 65} { // per cent of the interval, of the line
					for _, tap := range []int64{0, rtt*ms - 50_000} {
						r.rtt = rtt * ms
						r.loop = tap
						r.segment = segment
						r.interval = max(int64(r.piece/1460)*segment*100/busy, r.rtt*3/2)
						g := r.judge(t)
						if tap > 0 {
							far++
						}
						if tap > 0 && g.Limiter == verdict.Mixed {
							mixed++
						} else if g.Limiter != verdict.ReceiverApplication {
							t.Errorf("%+v: %s %s %v", r, g.Confidence, g.Limiter, g.Shares)
						}
					}
				}
			}
		}
	}
	if 10*mixed > far {
		t.Errorf("%d of %d cases at the receiver are mixed", mixed, far)
	}
}

// ReaderPaced is a part of the whole time, which lost SYNs are part of.
func TestReaderPaced_ShareOfTheWholeTime(t *testing.T) {
	x := timeline{length: 1, c: &flow.Connection{SYNWait: 1e9}, d: &flow.Direction{ReaderPaced: 5e8},
		time: map[verdict.Name]float64{verdict.Congestion: 1, verdict.Sender: 0.8, verdict.ReceiverApplication: 0.2}}
	if got := x.shares()[verdict.ReceiverApplication]; got != 0.1+0.25 {
		t.Errorf("receiver-application %g, want 0.35", got)
	}
}
