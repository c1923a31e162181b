// Package iperf3 prints a test in iperf3's formats, JSON and text, so that programs that read iperf3's output read
// ours. The additional object "fullpipe" has the verdict.
package iperf3

import (
	"encoding/json"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Version is the iperf3 version whose output is reproduced.
const Version = "iperf 3.12"

// LaterKeys are keys of versions after Version that are printed too. Their types are from the release notes and
// the format strings of iperf_api.c. A program that requires the keys up to 3.19 tests those
// (TestConsumersOfIperf3); those of 3.20 and 3.21 are untested.
var LaterKeys = map[string]string{
	".start.fq_rate":                 "3.13 (PR 1461)",
	".start.test_start.fqrate":       "3.13 (PR 1461)",
	".start.test_start.bidir":        "3.13 (issue 1428)",
	".start.test_start.interval":     "3.17 (issue 1663)",
	".start.timestamp.timemillisecs": "3.20 (PR 1846)",
	".intervals[].streams[].reorder": "3.20",
	".end.streams[].sender.reorder":  "3.20",
	".start.test_start.gso":          "3.21 (PR 1925)",
	".start.test_start.gro":          "3.21 (PR 1925)",
}

// Document is the object that `iperf3 --json` prints.
type Document struct {
	Start     Start           `json:"start"`
	Intervals []Interval      `json:"intervals"`
	End       End             `json:"end"`
	Title     string          `json:"title,omitempty"`
	Extra     string          `json:"extra_data,omitempty"`
	Text      string          `json:"server_output_text,omitempty"`
	Object    json.RawMessage `json:"server_output_json,omitempty"`
	Error     string          `json:"error,omitempty"`
	Fullpipe  *Fullpipe       `json:"fullpipe,omitempty"`

	ControlMSS  int  `json:"-"` // MSS of the control connection, bytes; 0: unknown
	ChosenByMSS bool `json:"-"` // it determined the size of datagrams
}

// Fullpipe has the verdict of each direction with evidence and remedies.
type Fullpipe struct {
	Version    string             `json:"version"`
	Directions []record.Direction `json:"directions"`
}

// Start is the part known before data flows.
type Start struct {
	Connected  []Connected `json:"connected"`
	Version    string      `json:"version"`
	System     string      `json:"system_info"`
	Timestamp  *Timestamp  `json:"timestamp,omitempty"`
	Connecting *HostPort   `json:"connecting_to,omitempty"`
	Accepted   *HostPort   `json:"accepted_connection,omitempty"`
	Cookie     string      `json:"cookie,omitempty"`
	MSS        *int        `json:"tcp_mss_default,omitempty"`
	AskedMSS   *int        `json:"tcp_mss,omitempty"` // instead, if requested
	Bitrate    *int64      `json:"target_bitrate,omitempty"`
	FQRate     *int64      `json:"fq_rate,omitempty"`
	Buffer     *int        `json:"sock_bufsize,omitempty"`
	SendBuffer *int        `json:"sndbuf_actual,omitempty"`
	RecvBuffer *int        `json:"rcvbuf_actual,omitempty"`
	Test       *Test       `json:"test_start,omitempty"`
}

// Connected is one stream's connection.
type Connected struct {
	Socket     int    `json:"socket"`
	LocalHost  string `json:"local_host"`
	LocalPort  int    `json:"local_port"`
	RemoteHost string `json:"remote_host"`
	RemotePort int    `json:"remote_port"`
}

// Timestamp is the start of the test.
type Timestamp struct {
	Time    string `json:"time"`
	Seconds int64  `json:"timesecs"`
	Millis  int64  `json:"timemillisecs"`
}

// HostPort is the far end's address.
type HostPort struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

// Test has the requested parameters.
type Test struct {
	Protocol string  `json:"protocol"`
	Streams  int     `json:"num_streams"`
	Length   int     `json:"blksize"`
	Omit     int     `json:"omit"`
	Duration int     `json:"duration"`
	Bytes    int64   `json:"bytes"`
	Blocks   int64   `json:"blocks"`
	Reverse  int     `json:"reverse"`
	TOS      int     `json:"tos"`
	Bitrate  int64   `json:"target_bitrate"`
	Both     int     `json:"bidir"`
	FQRate   int64   `json:"fqrate"`
	Interval float64 `json:"interval"` // s
	GSO      int     `json:"gso"`      // requested: never
	GRO      int     `json:"gro"`
}

// Interval is one report interval.
type Interval struct {
	Streams []Span `json:"streams"`
	Sum     *Span  `json:"sum,omitempty"`
	Reverse *Span  `json:"sum_bidir_reverse,omitempty"`
}

// Span is a stream, or the sum of streams, over a time. Pointers are nil where iperf3 omits the key.
type Span struct {
	Socket      int     `json:"socket,omitempty"`
	Start       float64 `json:"start"`
	End         float64 `json:"end"`
	Seconds     float64 `json:"seconds"`
	Bytes       int64   `json:"bytes"`
	Bps         float64 `json:"bits_per_second"`
	Retransmits *int64  `json:"retransmits,omitempty"`
	Cwnd        *int64  `json:"snd_cwnd,omitempty"`
	SendWnd     *int64  `json:"snd_wnd,omitempty"`
	RTT         *int64  `json:"rtt,omitempty"` // µs
	RTTVar      *int64  `json:"rttvar,omitempty"`
	PMTU        *int    `json:"pmtu,omitempty"`
	// reordering events since the start; -1 is not known
	Reorder     *int64   `json:"reorder,omitempty"`
	MaxCwnd     *int64   `json:"max_snd_cwnd,omitempty"`
	MaxSendWnd  *int64   `json:"max_snd_wnd,omitempty"`
	MaxRTT      *int64   `json:"max_rtt,omitempty"`
	MinRTT      *int64   `json:"min_rtt,omitempty"`
	MeanRTT     *int64   `json:"mean_rtt,omitempty"`
	JitterMs    *float64 `json:"jitter_ms,omitempty"`
	Lost        *int64   `json:"lost_packets,omitempty"`
	Packets     *int64   `json:"packets,omitempty"`
	LostPercent *float64 `json:"lost_percent,omitempty"`
	OutOfOrder  *int64   `json:"out_of_order,omitempty"`
	Omitted     *bool    `json:"omitted,omitempty"`
	Sender      bool     `json:"sender"`
}

// End has the results of the whole test. It is empty if the test was aborted.
type End struct {
	Streams            []EndStream `json:"streams,omitempty"`
	Sum                *Span       `json:"sum,omitempty"` // UDP
	Sent               *Span       `json:"sum_sent,omitempty"`
	Received           *Span       `json:"sum_received,omitempty"`
	Reverse            *Span       `json:"sum_bidir_reverse,omitempty"` // UDP
	SentReverse        *Span       `json:"sum_sent_bidir_reverse,omitempty"`
	ReceivedReverse    *Span       `json:"sum_received_bidir_reverse,omitempty"`
	CPU                *CPU        `json:"cpu_utilization_percent,omitempty"`
	SenderCongestion   string      `json:"sender_tcp_congestion,omitempty"`
	ReceiverCongestion string      `json:"receiver_tcp_congestion,omitempty"`
}

// EndStream is one TCP stream as both ends counted it, or a UDP stream.
type EndStream struct {
	Sender   *Span `json:"sender,omitempty"`
	Receiver *Span `json:"receiver,omitempty"`
	UDP      *Span `json:"udp,omitempty"`
}

// CPU is in percent of one core.
type CPU struct {
	HostTotal    float64 `json:"host_total"`
	HostUser     float64 `json:"host_user"`
	HostSystem   float64 `json:"host_system"`
	RemoteTotal  float64 `json:"remote_total"`
	RemoteUser   float64 `json:"remote_user"`
	RemoteSystem float64 `json:"remote_system"`
}
