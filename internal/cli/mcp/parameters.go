package mcp

// The options of the tools: see options.go for the tags.

type measureOptions struct {
	Peer       string  `json:"peer"`
	Direction  string  `json:"direction,omitempty" flag:"direction" enum:"up,down,both"`
	Seconds    float64 `json:"seconds,omitempty" min:"0.5" max:"30" default:"5"`
	Megabytes  int     `json:"max_megabytes,omitempty" min:"1" max:"10000" default:"1000"`
	Streams    int     `json:"streams,omitempty" flag:"parallel" min:"1" max:"16" default:"1"`
	Congestion string  `json:"congestion,omitempty" flag:"congestion"`
	Receive    string  `json:"receive_buffer,omitempty" flag:"receive-buffer"`
	Send       string  `json:"send_buffer,omitempty" flag:"send-buffer"`
	Requests   string  `json:"requests,omitempty" enum:"rr,crr"`
	PerSecond  float64 `json:"requests_per_s,omitempty" min:"1" max:"10000" default:"100"`
}

func (measureOptions) describe() map[string]string {
	return map[string]string{
		"peer": "far end: a name of the user's configuration, HOST[:PORT], or fullpipe://, iperf3://, " +
			"iperf2:// or ndt7:// with it",
		"direction":      "the sending end: up is this host (default), both is one after the other",
		"seconds":        "length of each transfer",
		"max_megabytes":  "payload at which each transfer ends early, in 10^6 bytes",
		"streams":        "connections, or requests, at a time",
		"congestion":     "the sender's congestion control, such as cubic or bbr",
		"receive_buffer": "the receiver's buffer, as 4MiB; automatic if absent",
		"send_buffer":    "the sender's buffer, as 4MiB; automatic if absent",
		"requests":       "times requests instead, over open connections (rr) or new ones (crr)",
		"requests_per_s": "their rate",
	}
}

type diagnoseOptions struct {
	File string `json:"file"`
	Host string `json:"host,omitempty" flag:"host"`
	Port int    `json:"port,omitempty" flag:"port" min:"1" max:"65535"`
	Top  int    `json:"top,omitempty" min:"1" max:"50" default:"10"`
}

func (diagnoseOptions) describe() map[string]string {
	return map[string]string{
		"file": "capture (pcap, pcapng, also gzip or zstd) below a directory that the user allowed",
		"host": "only connections with this address at either end",
		"port": "only connections with this port at either end",
		"top":  "how many connections the result has, those that lost most time first",
	}
}

type whyOptions struct {
	Target  string  `json:"target"`
	Seconds float64 `json:"seconds,omitempty" flag:"for" unit:"s" min:"1" max:"30" default:"5"`
}

func (whyOptions) describe() map[string]string {
	return map[string]string{
		"target":  "a PID, :PORT, HOST[:PORT], or the name of a program, script, unit or container on this host",
		"seconds": "how long to look",
	}
}

type explainOptions struct {
	Name   string `json:"name"`
	System string `json:"system,omitempty" flag:"system"`
}

func (explainOptions) describe() map[string]string {
	return map[string]string{
		"name": "a limiter such as receiver-window or receiver-window/autotune-ceiling, or a parameter such as " +
			"tcp_rmem",
		"system": "family of systems: linux, windows, macos, freebsd",
	}
}

type planOptions struct {
	Rate        string `json:"rate" flag:"rate"`
	RTT         string `json:"rtt" flag:"rtt"`
	Jitter      string `json:"jitter,omitempty" flag:"jitter"`
	Target      string `json:"target,omitempty" flag:"target"`
	Role        string `json:"role,omitempty" flag:"role" enum:"sender,receiver,both"`
	Connections int    `json:"connections,omitempty" flag:"connections" min:"1" max:"10000"`
	Memory      string `json:"memory,omitempty" flag:"memory"`
	VPN         string `json:"vpn,omitempty" flag:"vpn"`
	App         string `json:"app,omitempty" flag:"app"`
}

func (planOptions) describe() map[string]string {
	return map[string]string{
		"rate":        "rate of the path at the IP layer, for example 100mbit",
		"rtt":         "minimum RTT of the path, for example 40ms",
		"jitter":      "variation of the round trip, as 5ms",
		"target":      "system to set, as linux-6.1, windows-11 or macos; this host's if absent",
		"role":        "the role of that system",
		"connections": "bulk connections at one time",
		"memory":      "the host's main memory, as 64GiB",
		"vpn":         "tunnels that the packets go through, the outermost first, as wireguard",
		"app":         "a program with a window of its own, as ssh, http2 or rclone",
	}
}

type predictOptions struct {
	Path        string `json:"path,omitempty" flag:"path"`
	Rate        string `json:"rate,omitempty" flag:"rate"`
	RTT         string `json:"rtt,omitempty" flag:"rtt"`
	Loss        string `json:"loss,omitempty" flag:"loss"`
	Queue       string `json:"queue,omitempty" flag:"queue"`
	Stack       string `json:"stack,omitempty" flag:"stack"`
	Direction   string `json:"direction,omitempty" flag:"direction" enum:"up,down"`
	Receive     string `json:"receive_buffer,omitempty" flag:"receive-buffer"`
	Send        string `json:"send_buffer,omitempty" flag:"send-buffer"`
	Window      string `json:"window,omitempty" flag:"window"`
	Write       string `json:"write_size,omitempty" flag:"write-size"`
	Congestion  string `json:"congestion,omitempty" flag:"congestion" enum:"cubic,reno,bbr"`
	Connections int    `json:"connections,omitempty" flag:"connections" min:"1" max:"1000"`
	Bytes       string `json:"bytes,omitempty" flag:"bytes"`
	App         string `json:"app,omitempty" flag:"app"`
}

func (predictOptions) describe() map[string]string {
	return map[string]string{
		"path":           "a lab profile such as wan-40ms, or settings such as rate=100mbit,rtt=40ms,loss=0.1%",
		"rate":           "rate of the path at the IP layer, for example 100mbit",
		"rtt":            "minimum RTT of the path, for example 40ms",
		"loss":           "share of segments lost, as 0.1%",
		"queue":          "queue of the line, as 1bdp, 150kB or 100packets",
		"stack":          "TCP stack of both hosts, as linux-6.1 or windows-xp",
		"direction":      "direction of the data",
		"receive_buffer": "the receiver's buffer, as 64KiB",
		"send_buffer":    "the sender's buffer, as 64KiB",
		"window":         "bound of the receiver's window, as 64KiB",
		"write_size":     "bytes of one write by the sender",
		"congestion":     "the sender's congestion control",
		"connections":    "connections at one time",
		"bytes":          "payload of the transfer, as 1GB; a steady transfer if absent",
		"app":            "a program with a window of its own, as ssh, http2 or rclone",
	}
}

type auditOptions struct {
	Snapshot    string `json:"snapshot,omitempty"`
	Rate        string `json:"rate,omitempty" flag:"rate"`
	RTT         string `json:"rtt,omitempty" flag:"rtt"`
	Connections int    `json:"connections,omitempty" flag:"connections" min:"1" max:"10000"`
}

func (auditOptions) describe() map[string]string {
	return map[string]string{
		"snapshot": "file of audit --collect of another host, below a directory that the user allowed; this " +
			"host if absent",
		"rate":        "with rtt: the path's rate, as 1gbit",
		"rtt":         "with rate: the path's least round trip, as 100ms",
		"connections": "bulk connections at one time",
	}
}

type historyOptions struct {
	Peer  string  `json:"peer,omitempty"`
	Hours float64 `json:"hours,omitempty" flag:"since" unit:"h" min:"0.01" max:"100000"`
	Limit int     `json:"limit,omitempty" flag:"limit" min:"1" max:"100" default:"20"`
}

func (historyOptions) describe() map[string]string {
	return map[string]string{
		"peer":  "only results of this far end or path key",
		"hours": "only results of the last hours",
		"limit": "how many results, the newest",
	}
}
