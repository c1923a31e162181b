package iperf3

import (
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// farCPU returns the far end's CPU time, nil if its Results have none. The rules on TCP read a thread's measured share.
func farCPU(r *transfer.Result, far Results) *transfer.CPU {
	if r.Near == nil || r.Near.CPU == nil || far.CPUTotal <= 0 {
		return nil
	}
	cpu := cpuOf(far, r.Near.CPU.Wall, 1)
	cpu.BusiestThread = 0
	return cpu
}

// cpuOf returns the CPU time of an end with n data threads in a test of that wall time. The busiest of them ran at
// least as much as the mean.
func cpuOf(r Results, wall time.Duration, n int) *transfer.CPU {
	cores := min(max(r.CPUTotal, 0), maxCPUPercent) / 100
	return &transfer.CPU{Wall: wall, Process: time.Duration(cores * float64(wall)),
		BusiestThread: min(cores/float64(n), 1)}
}

// maxCPUPercent is the largest accepted CPU usage: 1024 cores.
const maxCPUPercent = 1024 * 100

// addTCPFarResults adds the far end's counts to a result. Those of a receiver are only compared with ours.
func addTCPFarResults(r *transfer.Result, far Results) {
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

// addReceiverCounts adds the far receiver's counts to the result of this sender. Only the sender knows of
// datagrams lost after the last one that arrived.
func addReceiverCounts(r *transfer.DatagramResult, far Results) {
	var seconds float64
	var reordered, duplicates int64
	hasCounts := len(far.Streams) > 0
	for _, s := range far.Streams {
		if s.Extended != nil {
			reordered += s.Extended.Reordered
			duplicates += s.Extended.Duplicates
			r.Variation = s.Extended.Variation
			r.AddSocketDrops(s.Extended.SocketDrops)
		}
		hasCounts = hasCounts && s.Extended != nil
		r.Received += max(s.Packets-s.Errors, 0)
		r.Bytes += s.Bytes
		r.Jitter += time.Duration(s.Jitter * float64(time.Second) / float64(len(far.Streams)))
		seconds = max(seconds, s.End-s.Start)
	}
	r.Lost = max(r.Sent-r.Received, 0)
	if hasCounts {
		r.Reordered = &reordered
		r.Duplicates = &duplicates
		r.Received += duplicates
	}
	r.Duration = units.Seconds(seconds)
	if !hasCounts { // iperf3's time includes the wait at the end of the test
		r.Duration = min(r.Duration, max(r.Spec.Time, time.Millisecond))
	}
}
