package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// udpFlags are what concerns measure --udp alone.
type udpFlags struct {
	on       bool
	capacity bool
	rate     units.Rate
	datagram units.Size
}

// datagramSpecs are the UDP transfers to carry out, one for each direction; nil without
// --udp.
func (f *measureFlags) datagramSpecs(cmd *cobra.Command) ([]transfer.DatagramSpec, error) {
	if !f.udp.on {
		for _, flag := range []string{"rate", "datagram", "capacity"} {
			if cmd.Flags().Changed(flag) {
				return nil, &usageError{"--" + flag, "is about UDP", "--udp with it"}
			}
		}
		return nil, nil
	}
	for _, flag := range []string{"bytes", "send-buffer", "receive-buffer", "window", "write-size", "congestion", "mss", "no-delay",
		"write-rate", "read-rate", "exchange"} {
		if cmd.Flags().Changed(flag) {
			return nil, &usageError{"--" + flag, "is about TCP", "leave it out with --udp; --rate and --datagram say how UDP is sent"}
		}
	}
	if f.udp.capacity && (cmd.Flags().Changed("rate") || f.parallel > 1) {
		return nil, &usageError{"--capacity", "searches the rate itself, with one stream", "leave --rate and --parallel out"}
	}
	if f.udp.capacity && !cmd.Flags().Changed("time") {
		f.time = capacityTime
	}
	if f.udp.capacity && f.time < 2*time.Second {
		return nil, &usageError{"--time", "a capacity is the best of several seconds", "3s or more; 10s if not given"}
	}
	if f.udp.datagram < 16 || f.udp.datagram > 65507 {
		return nil, &usageError{"--datagram", fmt.Sprintf("%d bytes are no datagram's size here", int64(f.udp.datagram)), "16 to 65507"}
	}
	tcp, err := f.specs()
	if err != nil {
		return nil, err
	}
	var specs []transfer.DatagramSpec
	for _, s := range tcp {
		specs = append(specs, transfer.DatagramSpec{Direction: s.Direction, Bps: float64(f.udp.rate), Size: int(f.udp.datagram),
			Streams: f.parallel, Time: f.time, TOS: f.dscp << 2})
	}
	return specs, nil
}

func (f *measureFlags) runUDP(cmd *cobra.Command, text string, specs []transfer.DatagramSpec) error {
	ctx := cmd.Context()
	f.notes = cmd.ErrOrStderr()
	far, err := f.open(ctx, text)
	if err != nil {
		return err
	}
	defer far.Close()
	carrier, ok := far.(transfer.DatagramPeer)
	if !ok {
		return &usageError{"--udp", "this far end carries TCP only", "a host with iperf3 -s or fullpipe serve"}
	}
	if f.udp.capacity {
		return f.runCapacity(cmd, text, carrier, specs)
	}
	if f.bidir {
		return f.runUDPBoth(cmd, text, carrier, specs[0], specs[1])
	}
	doc := report.MeasureUDP{Header: newHeader(cmd), Peer: peerName(text)}
	for _, spec := range specs {
		lines := newLive(cmd.ErrOrStderr(), f.every(cmd.ErrOrStderr()), transfer.Spec{Direction: spec.Direction, Time: spec.Time})
		lines.plain = true
		result, err := carrier.RunDatagrams(ctx, spec, func(i transfer.Interval) { lines.show(spec.Direction, i) })
		lines.clear()
		var unsupported *transfer.Unsupported
		if errors.As(err, &unsupported) {
			err = &usageError{"measure --udp", err.Error(), "leave that option out"}
		}
		if result != nil {
			doc.Directions = append(doc.Directions, report.NewDatagrams(result))
		}
		if err != nil {
			return endUDP(cmd, &doc, err)
		}
	}
	return show(cmd, &doc)
}

// runUDPBoth sends UDP both ways at the same time.
func (f *measureFlags) runUDPBoth(cmd *cobra.Command, text string, far transfer.DatagramPeer, up, down transfer.DatagramSpec) error {
	carrier, ok := far.(transfer.BothWaysDatagramPeer)
	if !ok {
		return &usageError{"--bidir", "this far end carries one direction at a time", "--direction both, one after the other"}
	}
	out := cmd.ErrOrStderr()
	lines := newLive(out, f.every(out), transfer.Spec{Direction: transfer.Up, Time: up.Time}, transfer.Spec{Direction: transfer.Down, Time: up.Time})
	lines.plain = true
	upResult, downResult, err := carrier.RunBothDatagrams(cmd.Context(), up, down, lines.show)
	lines.clear()
	var unsupported *transfer.Unsupported
	if errors.As(err, &unsupported) {
		return &usageError{"measure --udp --bidir", err.Error(), "leave that option out, or --direction both"}
	}
	doc := report.MeasureUDP{Header: newHeader(cmd), Peer: peerName(text)}
	for _, r := range []*transfer.DatagramResult{upResult, downResult} {
		if r != nil {
			r.Warnings = append(r.Warnings, besideTheOther)
			doc.Directions = append(doc.Directions, report.NewDatagrams(r))
		}
	}
	if err != nil {
		return endUDP(cmd, &doc, err)
	}
	return show(cmd, &doc)
}

// endUDP prints what was measured before an error.
func endUDP(cmd *cobra.Command, doc *report.MeasureUDP, err error) error {
	if len(doc.Directions) == 0 {
		return err
	}
	return showCut(cmd, doc, &doc.Error, err)
}
