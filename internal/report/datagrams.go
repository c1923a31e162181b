package report

import (
	"fmt"
	"io"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// MeasureUDP is the object that `measure --udp --json` prints.
type MeasureUDP struct {
	Header
	Peer       string      `json:"peer"`
	Directions []Datagrams `json:"directions"`
	Error      *Failure    `json:"error,omitempty"`
}

// Datagrams is one direction of a UDP transfer. An absent count was not told by the
// receiver.
type Datagrams struct {
	Direction     transfer.Direction `json:"direction"`
	Protocol      string             `json:"protocol"` // "udp"
	OfferedBps    *float64           `json:"offered_bps,omitempty"`
	GoodputBps    float64            `json:"goodput_bps"`
	DurationS     float64            `json:"duration_s"`
	Bytes         int64              `json:"bytes"`
	DatagramBytes int                `json:"datagram_bytes"`
	Streams       int                `json:"streams"`
	Sent          int64              `json:"sent_datagrams"`
	Received      int64              `json:"received_datagrams"`
	Lost          int64              `json:"lost_datagrams"`
	LossRatio     float64            `json:"loss_ratio"`
	Reordered     *int64             `json:"reordered_datagrams,omitempty"`
	Duplicates    *int64             `json:"duplicate_datagrams,omitempty"`
	JitterS       float64            `json:"jitter_s"`
	Variation     *Variation         `json:"delay_variation,omitempty"`
	CPURatio      *float64           `json:"near_cpu_ratio,omitempty"` // of one processor
	FarCPURatio   *float64           `json:"far_cpu_ratio,omitempty"`
	Interrupted   bool               `json:"interrupted,omitempty"`
	Warnings      []string           `json:"warnings,omitempty"`
}

// Variation is how much longer than the shortest delay datagrams took.
type Variation struct {
	MedianS  float64 `json:"median_s"`
	P95S     float64 `json:"p95_s"`
	P99S     float64 `json:"p99_s"`
	LargestS float64 `json:"largest_s"`
}

// NewDatagrams describes one UDP transfer.
func NewDatagrams(r *transfer.DatagramResult) Datagrams {
	d := Datagrams{Direction: r.Spec.Direction, Protocol: "udp", GoodputBps: r.Bps(), DurationS: r.Duration.Seconds(), Bytes: r.Bytes,
		DatagramBytes: r.Spec.Size, Streams: max(r.Spec.Streams, 1), Sent: r.Sent, Received: r.Received, Lost: r.Lost,
		LossRatio: r.LossRatio(), Reordered: r.Reordered, Duplicates: r.Duplicates, JitterS: r.Jitter.Seconds(),
		Interrupted: !r.Complete, Warnings: r.Warnings}
	if r.Spec.Bps > 0 {
		d.OfferedBps = &r.Spec.Bps
	}
	if v := r.Variation; v != nil {
		d.Variation = &Variation{v.Median.Seconds(), v.P95.Seconds(), v.P99.Seconds(), v.Largest.Seconds()}
	}
	if r.CPU != nil && r.CPU.Wall > 0 {
		d.CPURatio = rate(r.CPU.Process.Seconds() / r.CPU.Wall.Seconds())
	}
	if r.FarCPU != nil && r.FarCPU.Wall > 0 {
		d.FarCPURatio = rate(r.FarCPU.Process.Seconds() / r.FarCPU.Wall.Seconds())
	}
	return d
}

// WriteText prints the measurement for a person.
func (m *MeasureUDP) WriteText(w io.Writer) {
	t := newTable()
	t.row("peer", m.Peer)
	t.write(w, "")
	for i := range m.Directions {
		fmt.Fprintln(w)
		m.Directions[i].writeText(w)
	}
}

func (d *Datagrams) writeText(w io.Writer) {
	fmt.Fprintln(w, Heading(d.Direction)+", UDP")
	t := newTable()
	text := units.Rate(d.GoodputBps).String()
	if d.OfferedBps != nil {
		text += " of " + units.Rate(*d.OfferedBps).String() + " offered"
	}
	t.row("goodput", fmt.Sprintf("%s   (%s in %s, datagrams of %d bytes)", text, units.Size(d.Bytes), secondsText(d.DurationS), d.DatagramBytes))
	t.row("lost", fmt.Sprintf("%d of %d datagrams (%.2g %%)", d.Lost, d.Sent, 100*d.LossRatio))
	switch {
	case d.Reordered == nil || d.Duplicates == nil:
		t.row("out of order", "not told by the far end")
	default:
		t.row("out of order", fmt.Sprintf("%d", *d.Reordered))
		t.row("came twice", fmt.Sprintf("%d", *d.Duplicates))
	}
	t.row("jitter", secondsText(d.JitterS))
	if v := d.Variation; v != nil {
		t.row("delay above least", fmt.Sprintf("%s median, %s at 95 %%, %s at 99 %%, %s largest", secondsText(v.MedianS),
			secondsText(v.P95S), secondsText(v.P99S), secondsText(v.LargestS)))
	}
	if d.CPURatio != nil {
		t.row("cpu", (&CPU{NearProcess: d.CPURatio, FarProcess: d.FarCPURatio}).text())
	}
	for _, warning := range d.Warnings {
		t.row("note", warning)
	}
	if d.Interrupted {
		t.row("interrupted", "these figures are of the part that was measured")
	}
	t.write(w, "  ")
}
