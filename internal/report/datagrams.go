package report

import (
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Datagrams describes one UDP transfer and its verdict.
func Datagrams(r *transfer.DatagramResult, v verdict.Verdict) record.Datagrams {
	d := record.Datagrams{Direction: r.Spec.Direction, Protocol: "udp", GoodputBps: r.Bps(),
		DurationS:     r.Duration.Seconds(),
		Bytes:         r.Bytes,
		DatagramBytes: r.Spec.Size, Streams: max(r.Spec.Streams, 1), Sent: r.Sent, Received: r.Received, Lost: r.Lost,
		LossRatio: r.LossRatio(), Reordered: r.Reordered, Duplicates: r.Duplicates, JitterS: r.Jitter.Seconds(),
		Limiter: v.Limiter, Confidence: v.Confidence, Candidates: v.Candidates, Evidence: text.EvidenceSentences(v.Evidence),
		Interrupted: !r.Complete, Warnings: r.Warnings}
	if r.Spec.Bps > 0 {
		d.OfferedBps = &r.Spec.Bps
	}
	if v := r.Variation; v != nil {
		d.Variation = &record.Variation{MedianS: v.Median.Seconds(), P95S: v.P95.Seconds(), P99S: v.P99.Seconds(),
			LargestS: v.Largest.Seconds()}
	}
	if r.CPU != nil && r.CPU.Wall > 0 {
		d.CPURatio = rate(r.CPU.Process.Seconds() / r.CPU.Wall.Seconds())
	}
	if r.FarCPU != nil && r.FarCPU.Wall > 0 {
		d.FarCPURatio = rate(r.FarCPU.Process.Seconds() / r.FarCPU.Wall.Seconds())
	}
	return d
}
