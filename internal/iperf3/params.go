package iperf3

import (
	"encoding/json"
	"errors"

	"github.com/fullpipe-net/fullpipe/internal/datagram"
)

// Ranges that current iperf3 servers enforce.
const (
	MaxTime    = 86400 // s
	MaxOmit    = 600   // s
	MaxStreams = 128
	MaxWindow  = 512 << 20 // bytes
	MaxLen     = 1 << 20   // bytes
	MaxUDPLen  = 65507     // bytes without IPv4 and UDP headers
	MaxMSS     = 32767
	MaxBurst   = 1000 // writes
)

// Params are a client's parameters. The zero value of a field is not sent.
type Params struct {
	UDP         bool
	Omit        int   // s at the start, not counted
	Time        int   // s
	Num         int64 // payload bytes
	Blocks      int64 // writes of Len bytes
	MSS         int
	NoDelay     bool
	Streams     int // in each direction
	Reverse     bool
	Both        bool  // --bidir
	Window      int   // SO_SNDBUF and SO_RCVBUF, bytes
	Len         int   // one write or one datagram, bytes
	Bandwidth   int64 // bit/s a stream, paced by the program
	FQRate      int64 // bit/s a stream, paced by the kernel
	PacingTimer int   // µs
	Burst       int   // writes between two reads of the clock
	TOS         int
	FlowLabel   int
	Title       string
	Extra       string
	Congestion  string
	// ServerOutput requests the server's output with its results.
	ServerOutput  bool
	Counters64    bool // 64-bit datagram counters
	Repeating     bool
	ZeroCopy      bool
	DontFragment  bool
	SkipRxCopy    bool
	Auth          string
	ClientVersion string
	// Search, between two fullpipes only: the receiver sends feedback to the sender.
	Search bool
	// Marked, between two fullpipes only: the hellos carry a mark of the cookie.
	Marked bool
}

// MarshalJSON writes the keys and types of iperf3: five numbers always, flags as true, switches as 1.
func (p Params) MarshalJSON() ([]byte, error) {
	bit := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	return json.Marshal(struct {
		TCP           bool   `json:"tcp,omitempty"`
		UDP           bool   `json:"udp,omitempty"`
		Omit          int    `json:"omit"`
		Time          int    `json:"time"`
		Num           int64  `json:"num"`
		Blocks        int64  `json:"blockcount"`
		MSS           int    `json:"MSS,omitempty"`
		NoDelay       bool   `json:"nodelay,omitempty"`
		Parallel      int    `json:"parallel"`
		Reverse       bool   `json:"reverse,omitempty"`
		Both          bool   `json:"bidirectional,omitempty"`
		Window        int    `json:"window,omitempty"`
		Len           int    `json:"len,omitempty"`
		Bandwidth     int64  `json:"bandwidth,omitempty"`
		FQRate        int64  `json:"fqrate,omitempty"`
		PacingTimer   int    `json:"pacing_timer,omitempty"`
		Burst         int    `json:"burst,omitempty"`
		TOS           int    `json:"TOS,omitempty"`
		FlowLabel     int    `json:"flowlabel,omitempty"`
		Title         string `json:"title,omitempty"`
		Extra         string `json:"extra_data,omitempty"`
		Congestion    string `json:"congestion,omitempty"`
		ServerOutput  int    `json:"get_server_output,omitempty"`
		Counters64    int    `json:"udp_counters_64bit,omitempty"`
		Repeating     int    `json:"repeating_payload,omitempty"`
		ZeroCopy      int    `json:"zerocopy,omitempty"`
		DontFragment  int    `json:"dont_fragment,omitempty"`
		SkipRxCopy    int    `json:"skip_rx_copy,omitempty"`
		Auth          string `json:"authtoken,omitempty"`
		ClientVersion string `json:"client_version,omitempty"`
		Search        int    `json:"fullpipe_search,omitempty"`
		Marked        int    `json:"fullpipe_marked,omitempty"`
	}{
		!p.UDP, p.UDP, p.Omit, p.Time, p.Num, p.Blocks, p.MSS, p.NoDelay, max(p.Streams, 1), p.Reverse, p.Both, p.Window,
		p.Len,
		p.Bandwidth, p.FQRate, p.PacingTimer, p.Burst, p.TOS, p.FlowLabel, p.Title, p.Extra, p.Congestion,
		bit(p.ServerOutput), bit(p.Counters64), bit(p.Repeating), bit(p.ZeroCopy), bit(p.DontFragment), bit(p.SkipRxCopy),
		p.Auth, p.ClientVersion, bit(p.Search), bit(p.Marked),
	})
}

// ParseParams parses a client's parameters. It checks types and ranges and ignores unknown keys.
func ParseParams(text []byte) (Params, error) {
	o, err := parseObject(text)
	if err != nil {
		return Params{}, err
	}
	var p Params
	var all []error
	flag := func(to *bool, key string) {
		v, err := o.flag(key)
		*to = v
		all = append(all, err)
	}
	bit := func(to *bool, key string) {
		v, err := o.bit(key)
		*to = v
		all = append(all, err)
	}
	small := func(to *int, key string, lowest, highest int64) {
		v, err := o.integer(key, lowest, highest)
		*to = int(v)
		all = append(all, err)
	}
	large := func(to *int64, key string) {
		v, err := o.integer(key, 0, 1<<62)
		*to = v
		all = append(all, err)
	}
	text2 := func(to *string, key string, maxLen int) {
		v, err := o.text(key, maxLen)
		*to = v
		all = append(all, err)
	}
	var tcp, sctp, mptcp bool
	flag(&tcp, "tcp")
	flag(&p.UDP, "udp")
	flag(&sctp, "sctp")
	flag(&mptcp, "mptcp")
	flag(&p.NoDelay, "nodelay")
	flag(&p.Reverse, "reverse")
	flag(&p.Both, "bidirectional")
	small(&p.Omit, "omit", 0, MaxOmit)
	small(&p.Time, "time", 0, MaxTime)
	large(&p.Num, "num")
	large(&p.Blocks, "blockcount")
	small(&p.Streams, "parallel", 1, MaxStreams)
	small(&p.MSS, "MSS", 0, MaxMSS)
	small(&p.Window, "window", 0, MaxWindow)
	small(&p.Len, "len", 0, MaxLen)
	large(&p.Bandwidth, "bandwidth")
	large(&p.FQRate, "fqrate")
	small(&p.PacingTimer, "pacing_timer", 0, 60e6)
	small(&p.Burst, "burst", 0, MaxBurst)
	small(&p.TOS, "TOS", 0, 255)
	small(&p.FlowLabel, "flowlabel", 0, 1<<20-1)
	bit(&p.ServerOutput, "get_server_output")
	bit(&p.Counters64, "udp_counters_64bit")
	bit(&p.Repeating, "repeating_payload")
	bit(&p.ZeroCopy, "zerocopy")
	bit(&p.Search, "fullpipe_search")
	bit(&p.Marked, "fullpipe_marked")
	bit(&p.DontFragment, "dont_fragment")
	bit(&p.SkipRxCopy, "skip_rx_copy")
	text2(&p.Title, "title", 1024)
	text2(&p.Extra, "extra_data", 4096)
	text2(&p.Congestion, "congestion", 64)
	text2(&p.Auth, "authtoken", 4096)
	text2(&p.ClientVersion, "client_version", 64)
	if err := errors.Join(all...); err != nil {
		return Params{}, err
	}
	p.Streams = max(p.Streams, 1)
	switch {
	case sctp:
		return p, errors.New("SCTP is not measured here")
	case mptcp:
		return p, errors.New("MPTCP is not measured here")
	case tcp && p.UDP:
		return p, errors.New("both tcp and udp are requested")
	case p.Reverse && p.Both:
		return p, errors.New("both reverse and bidirectional are requested")
	case p.Search && (!p.UDP || p.Streams > 1 || p.Both || p.Omit > 0):
		return p, errors.New("a search takes one UDP stream and all of its time")
	case p.UDP && p.Len > MaxUDPLen:
		return p, errors.New("len exceeds the maximum datagram")
	case p.UDP && p.Len != 0 && p.Len < datagram.HeaderSize(p.Counters64):
		return p, errors.New("len is less than a datagram's header")
	}
	return p, nil
}

// wholeWriteBytes returns requestedBytes rounded up to whole writes, as iperf3 sends them.
func (p *Params) wholeWriteBytes() int64 {
	size := int64(max(p.Len, 1))
	return (min(p.requestedBytes(), 1<<62) + size - 1) / size * size
}

// requestedBytes returns the bytes of each direction, 0 if unknown. With an omitted time they cannot be known in
// advance.
func (p *Params) requestedBytes() int64 {
	switch {
	case p.Omit > 0:
		return 0
	case p.Num > 0:
		return p.Num
	}
	return min(p.Blocks, 1<<40) * int64(max(p.Len, 1))
}
