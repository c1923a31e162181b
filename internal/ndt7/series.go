package ndt7

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/bulk"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// series are the samples of one connection during a test.
type series struct {
	conn    *Conn
	sender  bool
	samples []transfer.Sample
	stop    chan struct{}
	ended   chan struct{}
}

// follow samples a connection at the usual interval until finish. each, if not nil, receives each sample.
func follow(conn *Conn, sender bool, each func(*transfer.Sample)) *series {
	s := &series{conn: conn, sender: sender, stop: make(chan struct{}), ended: make(chan struct{})}
	s.read(each)
	go func() {
		defer close(s.ended)
		stretch := time.Duration(1)
		for {
			timer := time.NewTimer(bulk.Cadence(time.Since(conn.clock)) * stretch)
			select {
			case <-timer.C:
			case <-s.stop:
				timer.Stop()
				s.read(each)
				return
			}
			if s.read(each); len(s.samples) >= bulk.MaxSamples {
				s.samples = transfer.Downsample(s.samples, bulk.MaxSamples/2)
				stretch *= 2
			}
		}
	}()
	return s
}

func (s *series) read(each func(*transfer.Sample)) {
	one, ok := s.conn.sample(s.sender)
	if !ok {
		return
	}
	s.samples = append(s.samples, one)
	if each != nil {
		each(&one)
	}
}

// finish stops the sampling and describes the connection with the caller's times and bytes.
func (s *series) finish() transfer.Stream {
	close(s.stop)
	<-s.ended
	d := s.conn.end()
	d.Samples = s.samples
	for i := range d.Samples {
		one := &d.Samples[i]
		d.SendBuffer.Effective = max(d.SendBuffer.Effective, int(one.InFlight))
		d.ReceiveBuffer.Effective = max(d.ReceiveBuffer.Effective, int(one.ReceiveWnd))
	}
	return d
}

// Limits of unsent bytes in a sender's socket: enough for short scheduling delays, but little enough that a test
// ends on time.
const (
	minUnsent  = 64 << 10
	maxUnsent  = 4 << 20
	unsentTime = 100 * time.Millisecond // at the delivery rate
)

// limitUnsent sets TCP_NOTSENT_LOWAT by the connection's rate. Without it a test only ends later.
func limitUnsent(conn *Conn) func(*transfer.Sample) {
	set := 0
	raw, err := conn.SyscallConn()
	return func(s *transfer.Sample) {
		if err != nil {
			return
		}
		want := min(max(int(s.DeliveryBps/8*unsentTime.Seconds()), minUnsent), maxUnsent)
		if want > set || want < set/4 {
			set = 2 * want
			err = socket.SetNotSentLowWater(raw, set)
		}
	}
}
