package plan

import (
	"math"
	"strconv"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// raise sets a maximum where the present one is smaller; it says whether it did.
func (p *Plan) raise(v present, role Role, name string, bytes int) bool {
	if !p.Role.has(role) {
		return false
	}
	if has, err := strconv.ParseInt(v.value(name), 0, 64); err == nil && has >= int64(bytes) {
		p.note(LimitSuffices, name, units.Size(has))
		return false
	}
	p.set(v, role, name, strconv.Itoa(bytes))
	return true
}

// macOSLargest is the most that kern.ipc.maxsockbuf takes on a machine with much
// memory; with less the limit is as low as 6 MB.
const macOSLargest = 32 << 20

func (p *Plan) macOS(v present) {
	if largest := max(p.WindowBytes, p.SendBytes); largest > macOSLargest {
		fits := macOSLargest / (2 * p.Path.MSS) * 2 * p.Path.MSS
		p.WindowBytes = min(p.WindowBytes, fits)
		p.SendBytes = min(p.SendBytes, fits)
		p.derive()
		p.warn(LargestMacOSBuffer, units.Size(macOSLargest),
			units.Size(largest), units.Rate(model.Rate(macOSLargest, p.Path.RTT+p.Path.Jitter)))
	}
	largest := p.largest()
	raised := p.raise(v, Both, "kern.ipc.maxsockbuf", largest)
	p.raise(v, Receiver, "net.inet.tcp.autorcvbufmax", p.WindowBytes)
	p.raise(v, Sender, "net.inet.tcp.autosndbufmax", p.SendBytes)
	if raised && largest > 6<<20 {
		p.warn(MacOSLimitByMemory)
	}
	p.note(ScaleFactorFits)
}

func (p *Plan) freeBSD(v present) {
	// sys/kern/uipc_sockbuf.c: the limit is scaled by MCLBYTES / (MSIZE + MCLBYTES)
	p.raise(v, Both, "kern.ipc.maxsockbuf", int(math.Ceil(float64(p.largest())*2304/2048)))
	p.raise(v, Receiver, "net.inet.tcp.recvbuf_max", p.WindowBytes)
	p.raise(v, Sender, "net.inet.tcp.sendbuf_max", p.SendBytes)
	p.note(CountsBookkeeping)
}

// largest is the larger buffer that the role needs.
func (p *Plan) largest() int {
	switch p.Role {
	case Sender:
		return p.SendBytes
	case Receiver:
		return p.WindowBytes
	}
	return max(p.WindowBytes, p.SendBytes)
}

func (p *Plan) netBSD(v present) {
	p.raise(v, Both, "kern.sbmax", p.largest())
	p.raise(v, Receiver, "net.inet.tcp.recvbuf_max", p.WindowBytes)
	p.raise(v, Sender, "net.inet.tcp.sendbuf_max", p.SendBytes)
}

// openBSDLargest is SB_MAX, up to which OpenBSD's buffers size themselves.
const openBSDLargest = 2 << 20

func (p *Plan) openBSD() {
	p.note(NothingSetsBuffers, units.Size(openBSDLargest))
	if largest := p.largest(); largest > openBSDLargest {
		fits := openBSDLargest / (2 * p.Path.MSS) * 2 * p.Path.MSS
		p.WindowBytes = min(p.WindowBytes, fits)
		p.SendBytes = min(p.SendBytes, fits)
		p.derive()
		p.warn(BeyondSystem, units.Size(largest),
			units.Rate(model.Rate(openBSDLargest, p.Path.RTT+p.Path.Jitter)), model.Connections(float64(largest),
				openBSDLargest))
	}
}

// resize sets the size that every connection has.
func (p *Plan) resize(v present, role Role, name string, now, bytes int) {
	if p.changes(now, bytes) {
		p.set(v, role, name, strconv.Itoa(bytes))
	} else if p.Role.has(role) {
		p.note(LimitSuffices, name, units.Size(now))
	}
}

func (p *Plan) solaris(v present) {
	largest := p.largest()
	p.raise(v, Both, "max_buf", largest+2*p.Path.MSS) // larger than _cwnd_max, as its manual asks
	p.raise(v, Sender, "_cwnd_max", p.SendBytes)
	p.resize(v, Sender, "send_buf", p.presentSend, p.SendBytes)
	p.resize(v, Receiver, "recv_buf", p.presentWindow, p.WindowBytes)
	p.note(BeforeSolaris11)
	p.note(OneSizeForAll)
}

func (p *Plan) aix(v present) {
	p.raise(v, Both, "sb_max", 2*p.largest()) // it counts bookkeeping
	p.resize(v, Sender, "tcp_sendspace", p.presentSend, p.SendBytes)
	p.resize(v, Receiver, "tcp_recvspace", p.presentWindow, p.WindowBytes)
	if p.LargeWindows && v.value("rfc1323") == "0" {
		p.set(v, Both, "rfc1323", "1")
	}
	p.note(InterfaceValuesWin)
}
