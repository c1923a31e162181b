// Package audit judges a snapshot of a host's settings: it finds those that limit a path, harm, have no effect or are
// unknown. It is pure. host.Snapshot takes the snapshot, or a collector script does where fullpipe cannot run.
package audit

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Snapshot is the state of a host at one time. A value that could not be read is absent, never 0.
type Snapshot struct {
	Schema  string    `json:"schema"` // "fullpipe/snapshot/v1"
	TakenAt time.Time `json:"taken_at,omitzero"`
	Host    string    `json:"host,omitempty"`
	System  string    `json:"system"`  // a family of the catalog: linux, windows, macos, freebsd
	Version string    `json:"version"` // kernel release; "10.0.17763" on Windows
	// Here reports that it is this host's, so that plan reads the values itself.
	Here bool `json:"-"`
	// Values are sysctls, registry values and cmdlet parameters by their names.
	Values map[string]string `json:"values"`
	// Configured are settings in files that the system reads at boot.
	Configured []Configured `json:"configured,omitempty"`

	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	PageBytes   int64 `json:"page_bytes,omitempty"`
	// LimitBytes is the memory limit of the container or cgroup.
	LimitBytes int64 `json:"limit_bytes,omitempty"`
	// TCPBytes is the memory of all TCP sockets.
	TCPBytes int64 `json:"tcp_bytes,omitempty"`
	// Namespace reports that the values are those of a network namespace other than the host's initial one: settings of
	// net.core belong to the host.
	Namespace bool `json:"namespace,omitempty"`
	Container bool `json:"container,omitempty"`

	// Namespaces are the host's other network namespaces, which have their own values.
	Namespaces []Namespace `json:"namespaces,omitempty"`

	Interfaces []Interface      `json:"interfaces,omitempty"`
	Routes     []Route          `json:"routes,omitempty"`
	Sockets    []Socket         `json:"sockets,omitempty"`
	Counters   map[string]int64 `json:"counters,omitempty"` // TcpExt and softnet, since boot
	// Unread has the values that could not be read, and the reasons.
	Unread []string `json:"unread,omitempty"`

	keys   map[string]bool // registry keys in a text that has only some; nil: all were read
	byName map[string]int  // index of each interface by its name, while lines are read
}

// SnapshotSchema is the schema of a Snapshot's JSON.
const SnapshotSchema = "fullpipe/snapshot/v1"

// Configured is one line of a configuration file.
type Configured struct {
	File  string `json:"file"`
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Namespace is a network namespace of the same host, as seen by one of its processes.
type Namespace struct {
	PID     int               `json:"pid"`
	Program string            `json:"program,omitempty"`
	Values  map[string]string `json:"values"`
}

// Interface is a network interface that is up.
type Interface struct {
	Name       string `json:"name"`
	MTUBytes   int    `json:"mtu_bytes,omitempty"`
	SpeedBps   int64  `json:"speed_bps,omitempty"`
	Duplex     string `json:"duplex,omitempty"` // full or half
	Qdisc      string `json:"qdisc,omitempty"`
	ShapeBps   int64  `json:"shape_bps,omitempty"` // rate of a token bucket
	TxQueueLen int    `json:"tx_queue_packets,omitempty"`
	Default    bool   `json:"default,omitempty"` // the default route goes through it
	// Counters: packets, rx_errors, rx_missed, tx_errors, tx_dropped, collisions, and of
	// the root qdisc qdisc_packets and qdisc_dropped.
	Counters map[string]int64 `json:"counters,omitempty"`
	Offloads map[string]bool  `json:"offloads,omitempty"` // tso gso gro rx-checksum tx-checksum
	Ring     *Ring            `json:"ring,omitempty"`
}

// Ring is the number of descriptors of a card.
type Ring struct {
	RX    int `json:"rx"`
	RXMax int `json:"rx_max"`
	TX    int `json:"tx"`
	TXMax int `json:"tx_max"`
}

// Route is a route with attributes that concern TCP.
type Route struct {
	Prefix     string            `json:"prefix"`
	Attributes map[string]string `json:"attributes"`
}

// Socket is a TCP socket that met a limit, or has a buffer that its program set.
type Socket struct {
	Local       string  `json:"local"`
	Remote      string  `json:"remote,omitempty"` // empty: it listens
	Program     string  `json:"program,omitempty"`
	SendBytes   int64   `json:"send_buffer_bytes,omitempty"`
	RecvBytes   int64   `json:"receive_buffer_bytes,omitempty"`
	SendFixed   bool    `json:"send_buffer_fixed,omitempty"` // by SO_SNDBUF
	RecvFixed   bool    `json:"receive_buffer_fixed,omitempty"`
	RTTS        float64 `json:"rtt_s,omitempty"`
	BusyS       float64 `json:"busy_s,omitempty"`
	RwndS       float64 `json:"rwnd_limited_s,omitempty"`
	SndbufS     float64 `json:"sndbuf_limited_s,omitempty"`
	DeliveryBps float64 `json:"delivery_bps,omitempty"`
}

const snapshotLimit = 32 << 20 // bytes

// ParseSnapshot reads the JSON of `audit --collect`, the lines of the collectors, or the output of Windows' own tools:
// a .reg file, `netsh int tcp show global`, Get-NetTCPSetting. The text is UTF-8 or of a code page.
func ParseSnapshot(text []byte) (*Snapshot, error) {
	if len(text) > snapshotLimit {
		return nil, fmt.Errorf("snapshot: longer than %d bytes", snapshotLimit)
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		s := &Snapshot{}
		if err := json.Unmarshal(text, s); err != nil {
			return nil, fmt.Errorf("snapshot: %w", err)
		}
		if s.Schema != SnapshotSchema {
			return nil, fmt.Errorf("snapshot: schema %q, not %q", s.Schema, SnapshotSchema)
		}
		for name, value := range s.Values { // sysctl -a has tabs
			s.Values[name] = strings.Join(strings.Fields(value), " ")
		}
		return s, nil
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte(linesMark)) {
		return parseLines(text)
	}
	return parseWindows(text)
}

// linesMark begins the output of the collectors.
const linesMark = "fullpipe-snapshot 1"

// CollectShell writes a snapshot as lines, on Linux, macOS and FreeBSD, with a POSIX
// shell and the system's own tools alone.
//
//go:embed collect.sh
var CollectShell string

// CollectPowerShell writes a snapshot as lines, on Windows with PowerShell 2.0 and later.
//
//go:embed collect.ps1
var CollectPowerShell string

// CollectBatch writes a snapshot as lines, on Windows 2000 to Server 2008 R2 without PowerShell.
//
//go:embed collect.cmd
var CollectBatch string

// parseLines reads the collectors' lines: a keyword, then fields.
func parseLines(text []byte) (*Snapshot, error) {
	s := &Snapshot{Schema: SnapshotSchema, Values: map[string]string{}, Counters: map[string]int64{}}
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, 1<<20)
	scanner.Scan() // linesMark
	w := windowsLines{Snapshot: s}
	for number := 2; scanner.Scan(); number++ {
		fields := strings.Fields(scanner.Text())
		if len(fields) < 2 {
			continue
		}
		if fields[0] == "text" {
			w.line(strings.Join(fields[1:], " "))
			continue
		}
		if err := s.line(fields[0], fields[1:]); err != nil {
			return nil, fmt.Errorf("snapshot, line %d: %w", number, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	if s.System == "" {
		return nil, fmt.Errorf("snapshot: it does not name its system")
	}
	if w.found {
		w.finish()
		s.keys = nil
	}
	return s, nil
}

// line reads one line of a collector.
func (s *Snapshot) line(keyword string, fields []string) error {
	rest := strings.Join(fields[1:], " ")
	number := func() (int64, error) { return strconv.ParseInt(fields[0], 10, 64) }
	var err error
	switch keyword {
	case "system":
		s.System = fields[0]
	case "version":
		s.Version = fields[0]
	case "host":
		s.Host = fields[0]
	case "taken":
		s.TakenAt, err = time.Parse(time.RFC3339, fields[0])
	case "memory":
		s.MemoryBytes, err = number()
	case "page":
		s.PageBytes, err = number()
	case "limit":
		s.LimitBytes, err = number()
	case "namespace":
		s.Namespace = fields[0] == "yes"
	case "container":
		s.Container = fields[0] == "yes"
	case "value":
		s.Values[fields[0]] = rest
	case "configured":
		if len(fields) >= 2 {
			s.Configured = append(s.Configured, Configured{fields[0], fields[1], strings.Join(fields[2:], " ")})
		}
	case "counter":
		s.Counters[fields[0]], err = strconv.ParseInt(rest, 10, 64)
	case "interface":
		err = s.interfaceOf(fields[0]).set(fields[1:])
	case "route":
		s.route(fields)
	case "unread":
		s.Unread = append(s.Unread, strings.Join(fields, " "))
	}
	// Newer collectors may write other keywords: they are ignored.
	return err
}

// interfaceOf returns the interface with a name; it adds a new one.
func (s *Snapshot) interfaceOf(name string) *Interface {
	if s.byName == nil {
		s.byName = map[string]int{}
	}
	i, known := s.byName[name]
	if !known {
		i = len(s.Interfaces)
		s.byName[name] = i
		s.Interfaces = append(s.Interfaces, Interface{Name: name})
	}
	return &s.Interfaces[i]
}

// set reads pairs of a key and a value; - and ? are unknown values.
func (f *Interface) set(pairs []string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		key := pairs[i]
		value := pairs[i+1]
		if value == "-" || value == "?" {
			continue
		}
		switch key {
		case "duplex":
			f.Duplex = value
			continue
		case "qdisc":
			f.Qdisc = value
			continue
		case "default":
			f.Default = value == "yes"
			continue
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return fmt.Errorf("%s %s: %q is not a number", f.Name, key, value)
		}
		switch key {
		case "mtu":
			f.MTUBytes = int(n)
		case "speed_mbit":
			if n > 0 && n < 1e7 {
				f.SpeedBps = n * 1e6
			}
		case "txqueuelen":
			f.TxQueueLen = int(n)
		case "tso", "gso", "gro":
			if f.Offloads == nil {
				f.Offloads = map[string]bool{}
			}
			f.Offloads[key] = n != 0
		default:
			if f.Counters == nil {
				f.Counters = map[string]int64{}
			}
			f.Counters[key] = n
		}
	}
	return nil
}

// routeAttributes are the attributes of `ip route show` that concern TCP.
var routeAttributes = map[string]bool{"window": true, "cwnd": true, "advmss": true, "initcwnd": true, "initrwnd": true,
	"mtu": true, "rto_min": true, "quickack": true, "congctl": true, "ssthresh": true}

// route adds a route that has such attributes, from a line of `ip route show`.
func (s *Snapshot) route(fields []string) {
	attributes := map[string]string{}
	for i := 1; i < len(fields); i++ {
		if !routeAttributes[fields[i]] {
			continue
		}
		name := fields[i]
		if i+1 < len(fields) && fields[i+1] == "lock" {
			i++
		}
		if i+1 < len(fields) {
			i++
			attributes[name] = fields[i]
		}
	}
	if len(attributes) > 0 {
		s.Routes = append(s.Routes, Route{fields[0], attributes})
	}
}
