package iperf3

import (
	"fmt"
	"io"
	"strings"
)

// Text prints a test as iperf3's text. Format is iperf3's -f: a unit, or 0 to choose one.
type Text struct {
	W       io.Writer
	Format  byte
	Verbose bool // iperf3's -V
}

const rule = "- - - - - - - - - - - - - - - - - - - - - - - - -"

// Opening prints the lines before data flows.
func (t Text) Opening(d *Document) {
	t.before(d)
	if c := d.Start.Connecting; c != nil {
		fmt.Fprintf(t.W, "Connecting to host %s, port %d\n", c.Host, c.Port)
		if d.Start.Test != nil && d.Start.Test.Reverse == 1 {
			fmt.Fprintf(t.W, "Reverse mode, remote host %s is sending\n", c.Host)
		}
	}
	if c := d.Start.Accepted; c != nil {
		fmt.Fprintf(t.W, "Accepted connection from %s, port %d\n", c.Host, c.Port)
	}
	t.settled(d)
	for _, c := range d.Start.Connected {
		fmt.Fprintf(t.W, "[%3d] local %s port %d connected to %s port %d\n", c.Socket, c.LocalHost, c.LocalPort, c.RemoteHost,
			c.RemotePort)
	}
	t.starting(d)
}

// Body prints the intervals and the end.
func (t Text) Body(d *Document) {
	t.Intervals(d, 0, d.Intervals)
	t.Ending(d)
}

// Intervals prints some intervals. The first one has index n.
func (t Text) Intervals(d *Document, n int, some []Interval) {
	if d.Start.Test == nil || len(some) == 0 {
		return
	}
	if n == 0 {
		t.head(d, true)
	}
	for _, one := range some {
		half := len(one.Streams)
		if one.Sum != nil && one.Reverse != nil {
			half /= 2
		} else if one.Sum == nil {
			half = 0
		}
		t.spans(d, one.Streams[:half], one.Sum)
		t.spans(d, one.Streams[half:], one.Reverse)
		if d.Start.Test.Streams > 1 {
			fmt.Fprintln(t.W, rule)
		}
	}
}

// Ending prints the lines after the last interval.
func (t Text) Ending(d *Document) {
	test := d.Start.Test
	if test == nil {
		return
	}
	if len(d.Intervals) > 0 && test.Streams == 1 {
		fmt.Fprintln(t.W, rule)
	}
	t.end(d)
	if d.Text != "" {
		fmt.Fprintf(t.W, "\nServer output:\n%s\n", strings.TrimRight(d.Text, "\n"))
	}
}

// spans prints one direction's streams in an interval, and their sum if there are several.
func (t Text) spans(d *Document, streams []Span, sum *Span) {
	for _, s := range streams {
		t.line(d, &s, "")
	}
	if d.Start.Test.Streams > 1 && sum != nil {
		t.line(d, sum, "")
	}
}

// sends reports whether this end sends first.
func (d *Document) sends() bool { return d.Start.Test.Reverse == 0 != d.isServer() }

// both reports whether both ends send.
func (d *Document) both() bool { return d.Start.Test.Both == 1 }

// head prints the column names of the intervals or of the end.
func (t Text) head(d *Document, intervals bool) {
	id := "[ ID]"
	sends := d.sends()
	both := d.both()
	if both {
		id = "[ ID][Role]"
	}
	// A client prints the results of both ends, a server its own.
	sending := sends || both || !intervals && !d.isServer()
	columns := ""
	switch udp := d.Start.Test.Protocol == "UDP"; {
	case udp && intervals && sends && !both:
		columns = "         Total Datagrams"
	case udp:
		columns = "         Jitter    Lost/Total Datagrams"
	case sending && intervals:
		columns = "         Retr  Cwnd"
	case sending:
		columns = "         Retr"
	}
	fmt.Fprintln(t.W, id+" Interval           Transfer     Bitrate"+columns)
}

// id returns the start of a line: a stream's number or SUM, and with --bidir its direction.
func (d *Document) id(s *Span) string {
	id := "[SUM]"
	if s.Socket != 0 {
		id = fmt.Sprintf("[%3d]", s.Socket)
	}
	if !d.both() {
		return id
	}
	way := "RX"
	end := "C"
	if s.Sender {
		way = "TX"
	}
	if d.isServer() {
		end = "S"
	}
	return id + "[" + way + "-" + end + "]"
}

// line prints one interval, or the final line of a stream. role is empty for intervals.
func (t Text) line(d *Document, s *Span, role string) {
	if role == "" && s.Omitted != nil && *s.Omitted {
		role = "(omitted)"
	}
	fmt.Fprintf(t.W, "%s %6.2f-%-6.2f sec  %ss  %ss/sec", d.id(s), s.Start, s.End, Amount(float64(s.Bytes), 'A'),
		Amount(s.Bps, t.format()))
	switch {
	case s.JitterMs != nil:
		fmt.Fprintf(t.W, "  %5.3f ms  %d/%d (%.2g%%)  %s", *s.JitterMs, *s.Lost, *s.Packets, *s.LostPercent, role)
	case s.Packets != nil && d.both(): // below the receiver's column of lost datagrams
		fmt.Fprintf(t.W, "            %d  %s", *s.Packets, role)
	case s.Packets != nil:
		fmt.Fprintf(t.W, "  %d  %s", *s.Packets, role)
	case s.Retransmits != nil && s.Omitted == nil:
		fmt.Fprintf(t.W, "  %3d             %s", *s.Retransmits, role)
	case s.Retransmits != nil && s.Cwnd != nil:
		fmt.Fprintf(t.W, "  %3d   %ss       %s", *s.Retransmits, Amount(float64(*s.Cwnd), 'A'), role)
	case s.Retransmits != nil:
		fmt.Fprintf(t.W, "  %3d             %s", *s.Retransmits, role)
	default:
		fmt.Fprintf(t.W, "                  %s", role)
	}
	fmt.Fprintln(t.W)
}

// end prints the results of the whole test: of both ends at a client, of itself at a server.
func (t Text) end(d *Document) {
	if len(d.End.Streams) == 0 {
		return
	}
	t.summary(d)
	t.head(d, false)
	n := len(d.End.Streams)
	if d.both() {
		n /= 2
	}
	t.whole(d, d.End.Streams[:n], d.End.Sent, d.End.Received)
	t.whole(d, d.End.Streams[n:], d.End.SentReverse, d.End.ReceivedReverse)
}

// whole prints one direction's final lines, with sums if there are several streams.
func (t Text) whole(d *Document, streams []EndStream, sent, received *Span) {
	line := func(s *Span, up bool, role string) {
		if !d.isServer() || up == (role == "sender") {
			one := *s
			one.Sender = up
			t.line(d, &one, role)
		}
	}
	up := false
	ends := func(sender, receiver *Span) {
		if line(sender, up, "sender"); !up {
			t.missing(d, sender.Socket, "sender")
		}
		if line(receiver, up, "receiver"); up {
			t.missing(d, sender.Socket, "receiver")
		}
	}
	for _, s := range streams {
		sender := s.Sender
		receiver := s.Receiver
		if s.UDP != nil {
			left := *s.UDP
			left.JitterMs = new(float64)
			left.Lost = new(int64)
			left.LostPercent = new(float64)
			sender = &left
			receiver = s.UDP
		}
		up = sender.Sender
		ends(sender, receiver)
	}
	if d.Start.Test.Streams > 1 && sent != nil {
		if d.Start.Test.Protocol == "TCP" {
			ends(sent, received)
		} else { // -V prints no more about its sums
			line(sent, up, "sender")
			line(received, up, "receiver")
		}
	}
	if len(streams) > 0 {
		t.spent(d, up)
	}
}

func (t Text) format() byte {
	if t.Format == 0 {
		return 'a'
	}
	return t.Format
}

// Amount formats a quantity as iperf3 does. Capital units are bytes in steps of 1024, small ones bits in steps of
// 1000. a and A choose the unit.
func Amount(v float64, format byte) string {
	base := 1000.0
	names := []string{"", "K", "M", "G", "T"}
	unit := "bit"
	if format >= 'A' && format <= 'Z' {
		base = 1024
		unit = "Byte"
		if format != 'A' {
			v /= 8
		}
	}
	step := strings.IndexByte("kmgt", format|0x20) + 1
	if format|0x20 == 'a' {
		step = 0
		for scaled := v; scaled >= base && step < len(names)-1; step++ {
			scaled /= base
		}
	}
	for range step {
		v /= base
	}
	decimals := 0
	switch {
	case v < 9.995:
		decimals = 2
	case v < 99.95:
		decimals = 1
	}
	return fmt.Sprintf("%4.*f %s%s", decimals, v, names[step], unit)
}
