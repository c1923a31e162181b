package iperf3

import (
	"cmp"
	"fmt"
)

// before prints -V's lines before the connection's. A server has printed its version at its start.
func (t Text) before(d *Document) {
	test := d.Start.Test
	if !t.Verbose {
		return
	}
	if !d.isServer() {
		fmt.Fprintf(t.W, "%s\n%s\n", d.Start.Version, d.Start.System)
	}
	if d.ControlMSS > 0 {
		fmt.Fprintf(t.W, "Control connection MSS %d\n", d.ControlMSS)
	}
	if test != nil && d.ChosenByMSS && !d.isServer() {
		fmt.Fprintf(t.W, "Setting UDP block size to %d\n", test.Length)
	}
	if at := d.Start.Timestamp; at != nil {
		fmt.Fprintf(t.W, "Time: %s\n", at.Time)
	}
}

// settled prints -V's lines about the connections.
func (t Text) settled(d *Document) {
	if !t.Verbose || d.Start.Test == nil {
		return
	}
	fmt.Fprintf(t.W, "      Cookie: %s\n", d.Start.Cookie)
	switch {
	case d.isServer() && d.Start.AskedMSS == nil && d.Start.Test.Protocol == "TCP": // like 3.12
		fmt.Fprintln(t.W, "      TCP MSS: 0 (default)")
	case d.Start.AskedMSS != nil:
		fmt.Fprintf(t.W, "      TCP MSS: %d\n", *d.Start.AskedMSS)
	case d.Start.MSS != nil:
		fmt.Fprintf(t.W, "      TCP MSS: %d (default)\n", *d.Start.MSS)
	}
	if rate := d.Start.Bitrate; rate != nil && *rate > 0 {
		fmt.Fprintf(t.W, "      Target Bitrate: %d\n", *rate)
	}
}

// starting prints -V's line with the requested parameters.
func (t Text) starting(d *Document) {
	test := d.Start.Test
	if !t.Verbose || test == nil {
		return
	}
	length := fmt.Sprintf("%d second test", test.Duration)
	switch {
	case test.Bytes > 0:
		length = fmt.Sprintf("%d bytes to send", test.Bytes)
	case test.Blocks > 0:
		length = fmt.Sprintf("%d blocks to send", test.Blocks)
	}
	fmt.Fprintf(t.W, "Starting Test: protocol: %s, %d streams, %d byte blocks, omitting %d seconds, %s, tos %d\n",
		test.Protocol, test.Streams, test.Length, test.Omit, length, test.TOS)
}

// summary prints the line above -V's results.
func (t Text) summary(d *Document) {
	if t.Verbose {
		fmt.Fprintln(t.W, "Test Complete. Summary Results:")
	}
}

// missing prints the line that a server's -V has for the far end of a stream or sum: 0.
func (t Text) missing(d *Document, stream int, end string) {
	if !t.Verbose || !d.isServer() {
		return
	}
	id := "[SUM]"
	if stream != 0 {
		id = fmt.Sprintf("[%3d]", stream)
	}
	fmt.Fprintf(t.W, "%s (%s statistics not available)\n", id, end)
}

// spent prints -V's lines about CPU and congestion control after a direction. up: this end sends.
func (t Text) spent(d *Document, up bool) {
	if !t.Verbose {
		return
	}
	if c := d.End.CPU; c != nil && up {
		ends := [][2]string{{"sender", "receiver"}}
		if d.both() {
			ends = append(ends, [2]string{"receiver", "sender"})
		}
		for _, end := range ends {
			fmt.Fprintf(t.W, "CPU Utilization: local/%s %.1f%% (%.1f%%u/%.1f%%s), remote/%s %.1f%% (%.1f%%u/%.1f%%s)\n", end[0],
				c.HostTotal, c.HostUser, c.HostSystem, end[1], c.RemoteTotal, c.RemoteUser, c.RemoteSystem)
		}
	}
	sender := d.End.SenderCongestion
	receiver := d.End.ReceiverCongestion
	if d.isServer() { // a server knows only its own
		sender = cmp.Or(sender, receiver)
		receiver = ""
		if !up {
			receiver = sender
			sender = ""
		}
	}
	for _, one := range [][2]string{{"snd", sender}, {"rcv", receiver}} {
		if one[1] != "" {
			fmt.Fprintf(t.W, "%s_tcp_congestion %s\n", one[0], one[1])
		}
	}
}
