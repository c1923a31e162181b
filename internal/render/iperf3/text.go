package iperf3

import (
	"fmt"
	"io"
	"strings"
)

// Text writes a test as iperf3 prints it. Format is iperf3's -f: a unit, or 0 for the
// fitting one.
type Text struct {
	W      io.Writer
	Format byte
}

const rule = "- - - - - - - - - - - - - - - - - - - - - - - - -"

// Opening is what iperf3 prints before data flows.
func (t Text) Opening(d *Document) {
	if c := d.Start.Connecting; c != nil {
		fmt.Fprintf(t.W, "Connecting to host %s, port %d\n", c.Host, c.Port)
		if d.Start.Test != nil && d.Start.Test.Reverse == 1 {
			fmt.Fprintf(t.W, "Reverse mode, remote host %s is sending\n", c.Host)
		}
	}
	if c := d.Start.Accepted; c != nil {
		fmt.Fprintf(t.W, "Accepted connection from %s, port %d\n", c.Host, c.Port)
	}
	for _, c := range d.Start.Connected {
		fmt.Fprintf(t.W, "[%3d] local %s port %d connected to %s port %d\n", c.Socket, c.LocalHost, c.LocalPort, c.RemoteHost,
			c.RemotePort)
	}
}

// Body is what it prints of the intervals and at the end.
func (t Text) Body(d *Document) {
	test := d.Start.Test
	if test == nil {
		return
	}
	udp := test.Protocol == "UDP"
	t.head(d.sends(), udp, len(d.Intervals) > 0 && d.Intervals[0].Reverse != nil)
	for i, one := range d.Intervals {
		for _, s := range one.Streams {
			t.line(fmt.Sprintf("[%3d]", s.Socket), &s, "")
		}
		if test.Streams > 1 {
			for _, sum := range []*Span{one.Sum, one.Reverse} {
				if sum != nil {
					t.line("[SUM]", sum, "")
				}
			}
		}
		if test.Streams > 1 || i == len(d.Intervals)-1 {
			fmt.Fprintln(t.W, rule)
		}
	}
	t.end(d, udp)
	if d.Text != "" {
		fmt.Fprintf(t.W, "\nServer output:\n%s\n", strings.TrimRight(d.Text, "\n"))
	}
}

// sends says that this end sends first.
func (d *Document) sends() bool { return d.Start.Test != nil && d.Start.Test.Reverse == 0 }

func (t Text) head(sends, udp, both bool) {
	id := "[ ID]"
	if both {
		id = "[ ID][Role]"
	}
	switch {
	case udp && sends:
		fmt.Fprintln(t.W, id+" Interval           Transfer     Bitrate         Total Datagrams")
	case udp:
		fmt.Fprintln(t.W, id+" Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams")
	case sends:
		fmt.Fprintln(t.W, id+" Interval           Transfer     Bitrate         Retr  Cwnd")
	default:
		fmt.Fprintln(t.W, id+" Interval           Transfer     Bitrate")
	}
}

// line is one interval or one end of a stream; role is empty for intervals.
func (t Text) line(id string, s *Span, role string) {
	if role == "" && s.Omitted != nil && *s.Omitted {
		role = "(omitted)"
	}
	fmt.Fprintf(t.W, "%s %6.2f-%-6.2f sec  %ss  %ss/sec", id, s.Start, s.End, Amount(float64(s.Bytes), 'A'),
		Amount(s.Bps, t.format()))
	switch {
	case s.JitterMs != nil:
		fmt.Fprintf(t.W, "  %5.3f ms  %d/%d (%.2g%%)  %s", *s.JitterMs, *s.Lost, *s.Packets, *s.LostPercent, role)
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

func (t Text) end(d *Document, udp bool) {
	if len(d.End.Streams) == 0 {
		return
	}
	if udp {
		fmt.Fprintln(t.W, "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams")
	} else {
		fmt.Fprintln(t.W, "[ ID] Interval           Transfer     Bitrate         Retr")
	}
	for _, s := range d.End.Streams {
		if s.UDP != nil {
			sent := *s.UDP
			nothing, none, percent := 0.0, int64(0), 0.0
			sent.JitterMs, sent.Lost, sent.LostPercent = &nothing, &none, &percent
			id := fmt.Sprintf("[%3d]", s.UDP.Socket)
			t.line(id, &sent, "sender")
			t.line(id, s.UDP, "receiver")
			continue
		}
		id := fmt.Sprintf("[%3d]", s.Sender.Socket)
		t.line(id, s.Sender, "sender")
		t.line(id, s.Receiver, "receiver")
	}
	if d.Start.Test.Streams > 1 {
		for _, pair := range [][2]*Span{{d.End.Sent, d.End.Received}, {d.End.SentReverse, d.End.ReceivedReverse}} {
			if pair[0] != nil {
				t.line("[SUM]", pair[0], "sender")
				t.line("[SUM]", pair[1], "receiver")
			}
		}
	}
}

func (t Text) format() byte {
	if t.Format == 0 {
		return 'a'
	}
	return t.Format
}

// Amount is a quantity as iperf3 prints it: capitals are bytes in steps of 1024, small
// letters bits in steps of 1000; a and A choose the step.
func Amount(v float64, format byte) string {
	base, names, unit := 1000.0, []string{"", "K", "M", "G", "T"}, "bit"
	if format >= 'A' && format <= 'Z' {
		base, unit = 1024, "Byte"
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
