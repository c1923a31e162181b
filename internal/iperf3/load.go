package iperf3

import (
	"context"
	"net"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/engine"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// half is one direction of a test at this end: TCP streams or UDP flows.
type half interface {
	sends() bool
	// run moves the data until its time or bytes are used up, or ctx ends.
	run(ctx context.Context, each func(transfer.Interval)) error
	// results are the streams in iperf3's words, numbered from the nth stream on.
	results(n int) []StreamResult
	// end tells a receiver that no more comes, and leaves it what is on its way.
	end()
	// outcome is what the client saw of the direction.
	outcome(started time.Time) transfer.Outcome
	close()
}

// load is one direction's TCP streams at this end, which is the near one of its Spec.
type load struct {
	spec    transfer.Spec
	streams []*socket.Stream
	cut     transfer.Cut  // its omitted time is not counted
	burst   int           // writes between two looks at the clock; 0: one
	saw     *transfer.End // what this end saw; set by run
	ran     time.Duration // how long run took
}

// newLoad takes the connections over, also when it fails.
func newLoad(conns []*net.TCPConn, spec transfer.Spec) (*load, error) {
	l := &load{spec: spec}
	for i, conn := range conns {
		if spec.Near.ReceiveBuffer > 0 {
			// A listener of that size has done so before the SYN, where there was one.
			conn.SetReadBuffer(spec.Near.ReceiveBuffer)
		}
		s, err := socket.NewStream(conn, socket.Options{Socket: spec.Near})
		if err != nil {
			closeAll(conns[i+1:])
			l.close()
			return nil, err
		}
		l.streams = append(l.streams, s)
	}
	return l, nil
}

// reportEvery is how often a load tells what moved.
const reportEvery = 20 * time.Millisecond

func (l *load) sends() bool { return l.spec.Direction == transfer.Up }

func (l *load) run(ctx context.Context, each func(transfer.Interval)) (err error) {
	endpoint := engine.Endpoint{Send: l.sends(), Spec: l.spec, Streams: l.streams, Every: reportEvery, Each: each,
		Cut: l.cut, Burst: l.burst, KeepOpen: true}
	if l.sends() {
		endpoint.Preface = CookieSize
	}
	started := time.Now()
	l.saw, err = endpoint.Run(ctx)
	l.ran = time.Since(started)
	return err
}

// end closes the sending side: iperf3's clients read whole blocks at the end of a timed
// test and would wait for the rest of one that was cut short.
func (l *load) end() {
	for _, s := range l.streams {
		if l.sends() {
			s.CloseWrite() // a connection that is gone needs no end
		}
	}
}

// close cuts off what is still under way: both ends have said that the test is over.
func (l *load) close() {
	for _, s := range l.streams {
		s.Reset()
		s.Close()
	}
}

func (l *load) results(n int) (all []StreamResult) {
	for i := range l.saw.Streams {
		r := l.counted(&l.saw.Streams[i])
		r.ID = StreamID(n + i)
		all = append(all, r)
	}
	return all
}

// counted tells what a stream moved after the omitted time. A sender counts what it
// handed to its kernel, as iperf3 does.
func (l *load) counted(s *transfer.Stream) StreamResult {
	var before, last transfer.Sample
	for _, sample := range s.Samples {
		if l.cut.Omit > 0 && sample.At <= s.First+l.cut.Omit {
			before = sample
		}
		last = sample
	}
	r := StreamResult{Bytes: s.Bytes, Retransmits: -1,
		End: max(lasted(s.Last, l.ran, l.spec.Time, l.spec.Bytes)-l.cut.Omit, 0).Seconds()}
	if last.Have&transfer.HaveProgram != 0 {
		r.Bytes = last.Program - before.Program
	}
	if l.sends() && last.Have&transfer.HaveRetrans != 0 {
		r.Retransmits = last.Retransmitted - before.Retransmitted
	}
	return r
}

// lasted is how long a stream moved data, as iperf3 counts it: from the test's beginning
// to the last byte where bytes end it, else until its time was up or it was cut short.
func lasted(last, ran, time time.Duration, bytes int64) time.Duration {
	switch {
	case bytes > 0:
		return last
	case time > 0:
		return min(time, ran)
	}
	return ran
}

// outcome is what the client saw of one direction.
func (l *load) outcome(started time.Time) transfer.Outcome {
	if l.saw != nil && l.sends() {
		l.saw.TimeByAcknowledgements()
	}
	return transfer.Outcome{TCP: &transfer.Result{Spec: l.spec, Started: started, Near: l.saw}}
}

// usage is this process's CPU time over a test's data.
type usage struct {
	at      time.Time
	process time.Duration
}

func startUsage() usage {
	process, _ := socket.ProcessCPU()
	return usage{time.Now(), process}
}

// spent is the same in this project's words, of a test's results.
func (u usage) spent(r Results) *transfer.CPU {
	wall := time.Since(u.at)
	return &transfer.CPU{Wall: wall, Process: time.Duration(r.CPUTotal / 100 * float64(wall))}
}

// resultsOf puts a test's halves, in the order of their streams' ids, into iperf3's
// words. The process's user and system time are not told apart: both are its total's.
func resultsOf(since usage, halves ...half) Results {
	r := Results{SenderHasRetransmits: -1}
	process, _ := socket.ProcessCPU()
	if wall := time.Since(since.at); wall > 0 {
		r.CPUTotal = 100 * (process - since.process).Seconds() / wall.Seconds()
	}
	r.CPUSystem = r.CPUTotal
	for _, h := range halves {
		streams := h.results(len(r.Streams))
		for _, s := range streams {
			if h.sends() {
				r.SenderHasRetransmits = max(r.SenderHasRetransmits, 0)
				if s.Retransmits >= 0 {
					r.SenderHasRetransmits = 1
				}
			}
		}
		if l, ok := h.(*load); ok && len(l.saw.Streams) > 0 {
			r.Congestion = l.saw.Streams[0].Congestion
		}
		r.Streams = append(r.Streams, streams...)
	}
	return r
}
