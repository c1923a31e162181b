package iperf3

import (
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// farCPU is what the far end says that it spent; nil where its Results say nothing.
func farCPU(r *transfer.Result, far Results) *transfer.CPU {
	if r.Near == nil || r.Near.CPU == nil {
		return nil
	}
	return toldCPU(far, r.Near.CPU.Wall)
}

// toldCPU is the far end's CPU time over the time that this end counted; nil where its
// Results say nothing.
func toldCPU(far Results, wall time.Duration) *transfer.CPU {
	if far.CPUTotal <= 0 {
		return nil
	}
	return &transfer.CPU{Wall: wall, Process: time.Duration(min(far.CPUTotal, mostCPU) / 100 * float64(wall))}
}

// mostCPU is as many percent of a core as are believed: 1024 of them.
const mostCPU = 1024 * 100

// tell adds what the far end counted to a result. A far end that received stays unseen:
// its count is only compared with ours.
func tell(r *transfer.Result, far Results) {
	var bytes, retransmits int64
	for _, s := range far.Streams {
		bytes += s.Bytes
		retransmits += max(s.Retransmits, 0)
	}
	if r.Spec.Direction == transfer.Up {
		r.FarCPU = farCPU(r, far)
		if span, ok := r.Received(); ok && (bytes < span.Bytes*98/100 || bytes > span.Bytes*102/100) {
			r.Warnings = append(r.Warnings, fmt.Sprintf("the far iperf3 counted %s, its system acknowledged %s",
				units.Size(bytes), units.Size(span.Bytes)))
		}
		return
	}
	r.Far = &transfer.End{CPU: farCPU(r, far)}
	for _, s := range r.Near.Streams {
		r.Far.Streams = append(r.Far.Streams, transfer.Stream{Local: s.Remote, Remote: s.Local, Congestion: far.Congestion,
			SendBuffer: transfer.Buffer{Requested: r.Spec.Far.SendBuffer}})
	}
	if far.SenderHasRetransmits == 1 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the far iperf3 counted %d retransmitted segments", retransmits))
	}
}

// receivedThere fills in what a far end counted of what this end sent. Datagrams that
// were lost after the last one that it saw are known only here.
func receivedThere(r *transfer.DatagramResult, far Results) {
	var seconds float64
	var reordered, duplicates int64
	told := len(far.Streams) > 0
	for _, s := range far.Streams {
		if s.More != nil {
			reordered += s.More.Reordered
			duplicates += s.More.Duplicates
			r.Variation = s.More.Variation
		}
		told = told && s.More != nil
		r.Received += max(s.Packets-s.Errors, 0)
		r.Bytes += s.Bytes
		r.Jitter += time.Duration(s.Jitter * float64(time.Second) / float64(len(far.Streams)))
		seconds = max(seconds, s.End-s.Start)
	}
	r.Lost = max(r.Sent-r.Received, 0)
	if told {
		r.Reordered = &reordered
		r.Duplicates = &duplicates
		r.Received += duplicates
	}
	r.Duration = units.Seconds(seconds)
	if !told { // iperf3's time includes what the test waited for at its end
		r.Duration = min(r.Duration, max(r.Spec.Time, time.Millisecond))
	}
}
