package record

import (
	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/plan"
)

// Plan is the object that `plan --json` prints, and the file that apply reads.
type Plan struct {
	Header
	Target             string    `json:"target,omitempty"`
	Role               plan.Role `json:"role,omitempty"`
	RateBps            float64   `json:"rate_bps,omitempty"`
	RTTS               float64   `json:"rtt_s,omitempty"`
	JitterS            float64   `json:"jitter_s,omitempty"`
	MSSBytes           int       `json:"mss_bytes,omitempty"`
	Connections        int       `json:"connections,omitempty"`
	BDPBytes           int64     `json:"bdp_bytes,omitempty"`
	LargeWindows       *bool     `json:"large_windows,omitempty"`
	WindowScale        *int      `json:"window_scale,omitempty"`
	Segments           int       `json:"segments,omitempty"`
	ReceiveWindowBytes int       `json:"receive_window_bytes,omitempty"`
	SendBufferBytes    int       `json:"send_buffer_bytes,omitempty"`
	MemoryBytes        int64     `json:"memory_bytes,omitempty"`
	// ExpectedGoodputBps is the payload that one connection gets with these windows, and
	// FillsRatio its share of the capacity.
	ExpectedGoodputBps float64 `json:"expected_goodput_bps,omitempty"`
	FillsRatio         float64 `json:"fills_ratio,omitempty"`
	// TotalGoodputBps is the payload of all connections together with these windows, TotalFillsRatio its share of the
	// line's capacity, and TotalNowBps their payload with the present settings. They are absent for one connection.
	TotalGoodputBps float64 `json:"total_goodput_bps,omitempty"`
	TotalFillsRatio float64 `json:"total_fills_ratio,omitempty"`
	TotalNowBps     float64 `json:"total_now_bps,omitempty"`
	// Now is the result for one connection with the target's present settings, or its defaults.
	Now *plan.Now `json:"now,omitempty"`
	// Directions are the two directions of an asymmetric path. RateBps and the values derived from it then describe the
	// direction that the host sends in, or receives in if it only receives.
	Directions        []plan.Direction `json:"directions,omitempty"`
	End               string           `json:"end,omitempty"` // far: the settings are the far host's
	App               *PlanApp         `json:"app,omitempty"`
	Tunnel            *PlanTunnel      `json:"tunnel,omitempty"`
	Route             *plan.Route      `json:"route,omitempty"`
	SharedWindowBytes int              `json:"shared_window_bytes,omitempty"`
	SharedSendBytes   int              `json:"shared_send_buffer_bytes,omitempty"`
	Paths             []plan.Shared    `json:"paths,omitempty"`
	Settings          []plan.Setting   `json:"settings"`
	Warnings          []string         `json:"warnings"`
	Notes             []string         `json:"notes,omitempty"`
	Window            *WindowAnswer    `json:"window,omitempty"`
}

// WindowAnswer is the effect of a given window: the longest RTT at which it fills the given rate, and the rate that it
// allows at the given RTT.
type WindowAnswer struct {
	WindowBytes    int     `json:"window_bytes"`
	WindowScale    int     `json:"window_scale"`
	ToleratedRTTS  float64 `json:"tolerated_rtt_s,omitempty"`
	AllowedRateBps float64 `json:"allowed_rate_bps,omitempty"`
}

// PlanTunnel is the MTU and the MSS inside a tunnel, and its overhead.
type PlanTunnel struct {
	Layers       string `json:"layers"` // the outermost first
	PathMTUBytes int    `json:"path_mtu_bytes"`
	MTUBytes     int    `json:"mtu_bytes"` // inside
	MSSBytes     int    `json:"mss_bytes"`
	// AroundBytes is the encapsulation overhead of a full segment's packet, HeaderRatio the share of all headers in it,
	// and WorstPaddingBytes the largest padding of any packet.
	AroundBytes       int      `json:"around_bytes"`
	HeaderRatio       float64  `json:"header_ratio"`
	WorstPaddingBytes int      `json:"worst_padding_bytes"`
	Clamp             []string `json:"clamp"` // commands that clamp the MSS, on Linux and on routers
}

// PlanApp is the rate that a program's own window, block or buffer allows on the path.
type PlanApp struct {
	catalog.Program
	AllowsBps  float64 `json:"allows_bps,omitempty"`
	FillsRatio float64 `json:"fills_ratio,omitempty"`
}
