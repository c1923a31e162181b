package record

import (
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict/compare"
)

// Compare is the object that `measure --compare --json` prints.
type Compare struct {
	Header
	Peers       [2]string           `json:"peers"`
	Rounds      int                 `json:"rounds"` // of first, second, second, first
	Directions  []ComparedDirection `json:"directions"`
	Interrupted bool                `json:"interrupted,omitempty"`
	Error       *Failure            `json:"error,omitempty"`
}

// ComparedDirection is the results of both ways in one direction, and the reason for the difference.
type ComparedDirection struct {
	Direction transfer.Direction `json:"direction"`
	First     ComparedWay        `json:"first"`
	Second    ComparedWay        `json:"second"`
	Factor    *TuneGain          `json:"second_over_first,omitempty"`
	compare.Difference
}

// ComparedWay is one of the two ways, over all its transfers.
type ComparedWay struct {
	Peer          string         `json:"peer"`
	GoodputBps    *float64       `json:"goodput_bps,omitempty"`
	CI95Bps       *[2]float64    `json:"ci95_bps,omitempty"`
	GoodputsBps   []float64      `json:"goodputs_bps"`
	Limiters      []string       `json:"limiters"` // of each transfer
	MSSBytes      int            `json:"mss_bytes,omitempty"`
	PathMTUBytes  int            `json:"path_mtu_bytes,omitempty"`
	RTTMin        units.Duration `json:"rtt_min_s,omitzero"`
	RTTMean       units.Duration `json:"rtt_mean_s,omitzero"`
	ResentRatio   *float64       `json:"retransmitted_ratio,omitempty"`
	WindowBytes   int            `json:"window_bytes,omitempty"`
	InFlightBytes int            `json:"in_flight_bytes,omitempty"`
	NearCPURatio  *float64       `json:"near_host_cpu_ratio,omitempty"`
	FarCPURatio   *float64       `json:"far_host_cpu_ratio,omitempty"`
}
