package record

import (
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// MeasureUDP is the object that `measure --udp --json` prints.
type MeasureUDP struct {
	Header
	Peer       string      `json:"peer"`
	Directions []Datagrams `json:"directions"`
	Criteria   []Criterion `json:"criteria,omitempty"`
	Error      *Failure    `json:"error,omitempty"`
}

// Datagrams is one direction of a UDP transfer. The receiver did not report an absent count.
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
	// Limiter, Confidence, Candidates and Evidence are absent in documents of versions without verdicts for UDP.
	Limiter    verdict.Name       `json:"limiter,omitempty"`
	Confidence verdict.Confidence `json:"confidence,omitempty"`
	Candidates []verdict.Name     `json:"candidates,omitempty"`
	Evidence   []verdict.Evidence `json:"evidence,omitempty"`
	// LostAt has the places where datagrams were dropped, as far as they are known; Segments are datagrams.
	LostAt      []LostAt `json:"lost_at,omitempty"`
	Interrupted bool     `json:"interrupted,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`
}

// Variation is the distribution of the datagrams' delays above the minimum.
type Variation struct {
	MedianS  float64 `json:"median_s"`
	P95S     float64 `json:"p95_s"`
	P99S     float64 `json:"p99_s"`
	LargestS float64 `json:"largest_s"`
}
