package iperf3

import (
	"context"
	"net"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/bulk"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// direction is one direction of a test at this end: TCP streams or UDP flows.
type direction interface {
	sends() bool
	// run moves data until the time or bytes are used up, or ctx ends.
	run(ctx context.Context, onInterval func(transfer.Interval)) error
	// results returns the streams as iperf3's results, numbered from n.
	results(n int) []StreamResult
	// end signals the end of data to a receiver. Data in flight still arrives.
	end()
	// outcome returns the client's measurement of the direction.
	outcome(started time.Time) transfer.Outcome
	close()
}

// tcpStreams are the TCP streams of one direction. This end is the near end of spec.
type tcpStreams struct {
	spec     transfer.Spec
	streams  []*socket.Stream
	cut      transfer.IntervalSchedule // with the omitted time
	burst    int                       // writes between two reads of the clock; 0: one
	measured *transfer.End             // this end's measurement, set by run
	runTime  time.Duration             // duration of run
}

// newTCPStreams takes ownership of the connections, even on error.
func newTCPStreams(conns []*net.TCPConn, spec transfer.Spec) (*tcpStreams, error) {
	l := &tcpStreams{spec: spec}
	for i, conn := range conns {
		if spec.Near.ReceiveBuffer > 0 {
			// A client sets the size before the SYN, and so does a server with Server.Window.
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

// reportInterval is the time between two reported intervals.
const reportInterval = 20 * time.Millisecond

func (l *tcpStreams) sends() bool { return l.spec.Direction == transfer.Up }

func (l *tcpStreams) run(ctx context.Context, onInterval func(transfer.Interval)) (err error) {
	endpoint := bulk.Endpoint{Send: l.sends(), Spec: l.spec, Streams: l.streams, Every: reportInterval, Each: onInterval,
		Cut: l.cut, Burst: l.burst, KeepOpen: true}
	if l.sends() {
		endpoint.Preface = CookieSize
	}
	started := time.Now()
	l.measured, err = endpoint.Run(ctx)
	l.runTime = time.Since(started)
	return err
}

// end closes the sending side. iperf3's clients read whole blocks and would otherwise wait for the rest of the
// last one.
func (l *tcpStreams) end() {
	for _, s := range l.streams {
		if l.sends() {
			s.CloseWrite() // errors mean that the connection is already closed
		}
	}
}

// close resets the streams: both ends have agreed that the test is over.
func (l *tcpStreams) close() {
	for _, s := range l.streams {
		s.Reset()
		s.Close()
	}
}

func (l *tcpStreams) results(n int) (all []StreamResult) {
	for i := range l.measured.Streams {
		r := l.streamResult(&l.measured.Streams[i])
		r.ID = StreamID(n + i)
		all = append(all, r)
	}
	return all
}

// streamResult returns a stream's counts after the omitted time. Like iperf3, a sender counts the bytes that it
// wrote to its kernel.
func (l *tcpStreams) streamResult(s *transfer.Stream) StreamResult {
	var before, last transfer.Sample
	for _, sample := range s.Samples {
		if l.cut.Omit > 0 && sample.At <= s.First+l.cut.Omit {
			before = sample
		}
		last = sample
	}
	r := StreamResult{Bytes: s.Bytes, Retransmits: -1,
		End: max(streamDuration(s.Last, l.runTime, l.spec.Time, l.spec.Bytes)-l.cut.Omit, 0).Seconds()}
	if last.Have&transfer.HaveProgram != 0 {
		r.Bytes = last.Program - before.Program
	}
	if l.sends() && last.Have&transfer.HaveRetrans != 0 {
		r.Retransmits = last.Retransmitted - before.Retransmitted
	}
	return r
}

// streamDuration returns how long a stream moved data, as iperf3 counts it: up to the last byte if bytes end the
// test, else until the end or abort.
func streamDuration(last, ran, time time.Duration, bytes int64) time.Duration {
	switch {
	case bytes > 0:
		return last
	case time > 0:
		return min(time, ran)
	}
	return ran
}

// outcome returns the client's measurement of one direction.
func (l *tcpStreams) outcome(started time.Time) transfer.Outcome {
	if l.measured != nil && l.sends() {
		l.measured.TimeByAcknowledgements()
	}
	return transfer.Outcome{TCP: &transfer.Result{Spec: l.spec, Started: started, Near: l.measured}}
}

// cpuUsage is the CPU time of this process and host during the data transfer.
type cpuUsage struct {
	at      time.Time
	process time.Duration
	host    socket.HostCPU
}

func startUsage() cpuUsage {
	process, _ := socket.ProcessCPU()
	return cpuUsage{time.Now(), process, socket.ReadHostCPU()}
}

// cpu returns the CPU time of results with n data threads as transfer.CPU.
func (u cpuUsage) cpu(r Results, n int) *transfer.CPU {
	cpu := cpuOf(r, time.Since(u.at), n)
	cpu.Host = u.host.Busy()
	return cpu
}

// resultsOf returns iperf3's results of all directions in the order of stream ids. User and system time are both
// the total.
func resultsOf(since cpuUsage, directions ...direction) Results {
	r := Results{SenderHasRetransmits: -1}
	process, _ := socket.ProcessCPU()
	if wall := time.Since(since.at); wall > 0 {
		r.CPUTotal = 100 * (process - since.process).Seconds() / wall.Seconds()
	}
	r.CPUSystem = r.CPUTotal
	host := since.host.Busy()
	for _, dir := range directions {
		streams := dir.results(len(r.Streams))
		for _, s := range streams {
			if s.Extended != nil {
				s.Extended.Host = host
			}
			if dir.sends() {
				r.SenderHasRetransmits = max(r.SenderHasRetransmits, 0)
				if s.Retransmits >= 0 {
					r.SenderHasRetransmits = 1
				}
			}
		}
		if l, ok := dir.(*tcpStreams); ok && len(l.measured.Streams) > 0 {
			r.Congestion = l.measured.Streams[0].Congestion
		}
		r.Streams = append(r.Streams, streams...)
	}
	return r
}
