package iperf3

import (
	"errors"
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// checkSpec returns *transfer.Unsupported if iperf3's protocol cannot express the Spec.
func checkSpec(spec transfer.Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	no := func(field, why string) error { return &transfer.Unsupported{Field: field, Reason: why} }
	up := spec.Direction == transfer.Up
	window := spec.Far.ReceiveBuffer
	other := spec.Far.SendBuffer
	if !up {
		window, other = other, window
	}
	switch {
	case spec.Requests.On():
		return no(transfer.FieldRequests, "only a fullpipe server responds to a load of requests")
	case spec.Streams > MaxStreams:
		return no("Streams", "iperf3 carries at most 128")
	case spec.Time > MaxTime*time.Second:
		return no("Time", "iperf3 runs for at most a day")
	case window > MaxWindow || other > MaxWindow:
		return no("Far."+farBuffer(spec.Direction), "iperf3 takes at most 512 MiB")
	case other != 0 && other != window:
		return no("Far", "iperf3 sets one size for both of a socket's buffers")
	case spec.Far.Clamp != 0:
		return no("Far.Clamp", "iperf3 cannot clamp a window, only set a buffer")
	case spec.Far.MSS > MaxMSS:
		return no("Far.MSS", "iperf3 takes at most 32767")
	case spec.Program.RequestResponse:
		return no("Program.RequestResponse", "iperf3 has no request-response mode")
	case up && spec.Program.ReadBps != 0:
		return no("Program.ReadBps", "iperf3 reads as fast as it can")
	case !up && spec.Program.WriteBytes > MaxLen:
		return no("Program.WriteBytes", "iperf3 writes at most 1 MiB at a time")
	}
	return nil
}

// farBuffer returns the name of the far end's buffer for a direction.
func farBuffer(d transfer.Direction) string {
	if d == transfer.Up {
		return "ReceiveBuffer"
	}
	return "SendBuffer"
}

// params returns the far end's part of the Spec. This end measures time and bytes, so the server only needs the
// expected time.
func params(spec transfer.Spec) Params {
	p := Params{
		Time: int(math.Ceil(spec.Time.Seconds())), Streams: max(spec.Streams, 1), Reverse: spec.Direction == transfer.Down,
		Window: max(spec.Far.SendBuffer, spec.Far.ReceiveBuffer), MSS: spec.Far.MSS, NoDelay: spec.Far.NoDelay,
		Congestion: spec.Far.Congestion, FQRate: int64(spec.Far.PacingBps), Len: 128 << 10, TOS: spec.Far.TOS,
		PacingTimer:   1000,
		ClientVersion: "fullpipe",
	}
	if spec.Time == 0 {
		p.Num = spec.Bytes
	}
	if p.Reverse {
		p.Bandwidth = int64(spec.Program.WriteBps)
		if spec.Program.WriteBytes > 0 {
			p.Len = spec.Program.WriteBytes
		}
	}
	return p
}

// checkBidir returns *transfer.Unsupported if the two Specs cannot share one test.
func checkBidir(up, down transfer.Spec) error {
	no := func(why string) error { return &transfer.Unsupported{Field: "Far", Reason: why} }
	switch {
	case up.Streams != down.Streams || up.Time != down.Time || up.Bytes != down.Bytes:
		return no("iperf3 uses the same streams and duration in both directions")
	case up.Far.ReceiveBuffer != down.Far.SendBuffer:
		return no("iperf3 sets one size for all of its buffers")
	case up.Far.Congestion != "" && up.Far.Congestion != down.Far.Congestion || up.Far.MSS != down.Far.MSS:
		return no("iperf3 treats all of its sockets alike")
	}
	return nil
}

// refusedField returns *transfer.Unsupported if the far end refused a field of the Spec, so that a search avoids
// it. Other errors are returned unchanged.
func refusedField(spec transfer.Spec, err error) error {
	var remote *RemoteError
	var closed *closedError
	switch {
	case errors.As(err, &remote):
		switch {
		case (remote.Code == CodeBuffer || remote.Code == CodeClipped) && max(spec.Far.SendBuffer,
			spec.Far.ReceiveBuffer) > 0:
			return &transfer.Unsupported{Field: "Far." + farBuffer(spec.Direction), Reason: remote.Error()}
		case remote.Code == CodeCongestion && spec.Far.Congestion != "":
			return &transfer.Unsupported{Field: "Far.Congestion", Reason: remote.Error()}
		case remote.Code == CodeMSS && spec.Far.MSS != 0:
			return &transfer.Unsupported{Field: "Far.MSS", Reason: remote.Error()}
		}
	case errors.As(err, &closed):
		// Servers before 3.21 often hang up on options that they cannot set.
		const why = "the far end closed the connection when this was requested"
		switch {
		case spec.Far.Congestion != "":
			return &transfer.Unsupported{Field: "Far.Congestion", Reason: why}
		case max(spec.Far.SendBuffer, spec.Far.ReceiveBuffer) > 0:
			return &transfer.Unsupported{Field: "Far." + farBuffer(spec.Direction), Reason: why}
		case spec.Far.MSS != 0:
			return &transfer.Unsupported{Field: "Far.MSS", Reason: why}
		case spec.Far.PacingBps != 0:
			return &transfer.Unsupported{Field: "Far.PacingBps", Reason: why}
		}
	}
	return err
}
