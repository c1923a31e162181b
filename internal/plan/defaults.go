package plan

import (
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/model"
)

// Defaults is what a system gives a connection whose program sets no buffers, where nobody changed a setting.
type Defaults struct {
	// ReceiveBuffer and SendBuffer are Linux's tcp_rmem and tcp_wmem; the other fields are the other systems'.
	ReceiveBuffer, SendBuffer string
	// FixedWindow is the window of every connection; 0: it grows to LargestWindow. Bytes.
	FixedWindow, LargestWindow int
	InFlight                   int // bytes that a sender keeps unacknowledged; 0: its buffer is not known to limit
	InitialWindow              int // segments; 0: not known
	Scales                     bool
	Congestion                 string // in small letters; "": not known
}

// Defaults returns the catalog's defaults of a system.
func (t Target) Defaults() Defaults {
	v := present{target: t}
	d := Defaults{Scales: true, ReceiveBuffer: v.value("net.ipv4.tcp_rmem"), SendBuffer: v.value("net.ipv4.tcp_wmem")}
	number := func(name string) int {
		n, _ := strconv.Atoi(v.value(name))
		return n
	}
	if sizes, fixed := fixedSizes[t.Family]; fixed {
		d.FixedWindow = WholeSegments(number(sizes.window), DefaultMSS)
		d.InFlight = number(sizes.send)
	} else if t.Family != catalog.Linux {
		d.LargestWindow, d.InFlight = v.ceilings(DefaultMSS)
	}
	switch t.Family {
	case catalog.Windows:
		d.InitialWindow = number("InitialCongestionWindow")
		d.Congestion = v.value("CongestionProvider")
		d.InFlight = 0
		if !catalog.AtLeast(t.Version, dynamicSendBuffers) {
			d.InFlight = model.DefaultAFDQuota
		}
	case catalog.FreeBSD:
		d.Congestion = v.value("net.inet.tcp.cc.algorithm")
	case catalog.AIX:
		d.Scales = v.value("rfc1323") != "0"
	case catalog.Windows2000, catalog.Windows9x:
		d.Scales = d.FixedWindow > model.MaxUnscaled
	}
	d.Congestion = strings.ToLower(d.Congestion)
	return d
}
