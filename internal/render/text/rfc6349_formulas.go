package text

import (
	"fmt"
	"strconv"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// RFC6349Formulas returns the arithmetic behind the report, direction by direction.
func RFC6349Formulas(r *record.RFC6349) []record.Formula {
	all := []record.Formula{}
	for i := range r.Directions {
		d := &r.Directions[i]
		if d.Bottleneck.Bps == 0 {
			continue
		}
		for _, f := range directionFormulas(&r.Path, d) {
			f.Direction = d.Direction
			all = append(all, f)
		}
	}
	return all
}

func directionFormulas(p *record.RFC6349Path, d *record.RFC6349Direction) []record.Formula {
	width := d.BDPBytes * 8 / p.RTT.Seconds()
	rtt := p.RTT.Seconds()
	mbit := func(bps float64) string { return strconv.FormatFloat(bps/1e6, 'f', 3, 64) + " Mbit/s" }
	packet := p.MSS + p.Headers
	options := "no timestamps"
	if p.Timestamps {
		options = "12 of them timestamps, which the RFC leaves out"
	}
	frames := model.Frames(d.ReferenceBps, packet, d.ReferenceOverhead)
	from := "bottleneck"
	if d.CommittedBps > 0 {
		from = "committed rate"
	}
	all := []record.Formula{
		{Name: "bandwidth-delay product", Source: "RFC 6349, 3.3.1", Formula: "round trip × bottleneck bandwidth",
			Result: d.BDPBytes, Unit: "bytes",
			Inputs: map[string]float64{"rtt_s": rtt, "bottleneck_bps": width},
			Text: fmt.Sprintf("%s × %s = %.0f bit, a window and a send buffer of %s at least", SecondsText(rtt),
				mbit(width),
				8*d.BDPBytes, units.Size(d.BDPBytes).Exact())},
		{Name: "packets a second", Source: "RFC 6349, 4.1.1", Formula: from + " / ((packet + framing) × 8)",
			Result: frames,
			Unit:   "packets/s",
			Inputs: map[string]float64{"rate_bps": d.ReferenceBps, "packet_bytes": float64(packet),
				"framing_bytes": float64(d.ReferenceOverhead)},
			Text: fmt.Sprintf("%s / ((%d + %d) bytes × 8) = %.1f packets/s", mbit(d.ReferenceBps), packet,
				d.ReferenceOverhead,
				frames)},
		{Name: "largest TCP rate", Source: "RFC 6349, 4.1.1", Formula: "packets a second × (packet − headers) × 8",
			Result: d.MaxTCPBps, Unit: "bps",
			Inputs: map[string]float64{"packets_per_s": frames, "packet_bytes": float64(packet),
				"header_bytes": float64(p.Headers)},
			Text: fmt.Sprintf("%.1f × (%d − %d) bytes × 8 = %s (headers: %s)", frames, packet, p.Headers,
				mbit(d.MaxTCPBps),
				options)},
	}
	if d.MaxBidirectionalBps > 0 {
		acks := (1 - d.MaxBidirectionalBps/d.MaxTCPBps) * d.ReferenceBps
		all = append(all, record.Formula{Name: "largest TCP rate, both directions", Source: "fullpipe",
			Formula: "the same of what the other direction's acknowledgements leave",
			Result:  d.MaxBidirectionalBps, Unit: "bps", Inputs: map[string]float64{"max_tcp_bps": d.MaxTCPBps,
				"acknowledgements_bps": acks},
			Text: fmt.Sprintf("%s of acknowledgements (%d bytes for every second segment) leave %s", mbit(acks),
				p.Headers+
					d.ReferenceOverhead, mbit(d.MaxBidirectionalBps))})
	}
	if test := d.Find(rfc6349.Full); test != nil && test.Typical() != nil {
		all = append(all, runFormulas(p, d, test.Typical())...)
	}
	return all
}

// runFormulas returns the formulas of a run's three metrics.
func runFormulas(p *record.RFC6349Path, d *record.RFC6349Direction, run *record.RFC6349Run) []record.Formula {
	actual := run.Duration.Seconds()
	ideal := run.Ideal.Seconds()
	settled := ""
	if run.Startup > 0 {
		settled = fmt.Sprintf("; in equilibrium, without %s of startup, %.3f", SecondsText(run.Startup.Seconds()),
			run.SteadyRatio)
	}
	all := []record.Formula{
		{Name: "ideal transfer time", Source: "RFC 6349, 4.1.2",
			Formula: "payload after the first read × 8 / largest TCP rate", Result: ideal, Unit: "s",
			Inputs: map[string]float64{"payload_bytes": float64(run.Bytes - run.OpeningBytes), "max_tcp_bps": d.MaxTCPBps},
			Text: fmt.Sprintf("%s × 8 / %.3f Mbit/s = %.3f s", units.Size(run.Bytes-run.OpeningBytes).Exact(),
				d.MaxTCPBps/1e6,
				ideal)},
		{Name: "TCP Transfer Time Ratio", Source: "RFC 6349, 4.1.2", Formula: "actual / ideal transfer time",
			Result: run.TimeRatio, Unit: "ratio",
			Inputs: map[string]float64{"actual_s": actual, "ideal_s": ideal},
			Text:   fmt.Sprintf("%.3f s / %.3f s = %.3f", actual, ideal, run.TimeRatio) + settled},
	}
	if sent := run.RFC6349Sender; sent != nil {
		all = append(all, record.Formula{Name: "TCP Efficiency", Source: "RFC 6349, 4.2.1",
			Formula: "(sent − retransmitted) / sent, retransmissions counted as sent",
			Result:  sent.Efficiency, Unit: "ratio", Inputs: map[string]float64{"sent_bytes": float64(sent.SentBytes),
				"retransmitted_bytes": float64(sent.RetransmittedBytes)},
			Text: fmt.Sprintf("(%s − %s) / %s = %.3f %%", units.Size(sent.SentBytes).Exact(),
				units.Size(sent.RetransmittedBytes).Exact(), units.Size(sent.SentBytes).Exact(), 100*sent.Efficiency)})
	}
	if delay := run.BufferDelay; delay != nil {
		all = append(all, record.Formula{Name: "Buffer Delay", Source: "RFC 6349, 4.3.1",
			Formula: "(mean round trip during the transfer − idle one) / idle one",
			Result:  *delay, Unit: "ratio",
			Inputs: map[string]float64{"rtt_mean_s": run.RTTMean.Seconds(), "rtt_idle_s": p.RTT.Seconds()},
			Text:   fmt.Sprintf("(%s − %s) / %s = %.1f %%", run.RTTMean, p.RTT, p.RTT, 100**delay)})
	}
	return all
}
