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
		p.note("%s: its %s are enough", name, units.Size(has))
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
		p.WindowBytes, p.SendBytes = min(p.WindowBytes, fits), min(p.SendBytes, fits)
		p.derive()
		p.warn("macOS has no socket buffers above 32 MiB: %s instead of %s, which allows %s", units.Size(macOSLargest),
			units.Size(largest), units.Rate(model.Rate(macOSLargest, p.Path.RTT+p.Path.Jitter)))
	}
	largest := p.largest()
	raised := p.raise(v, Both, "kern.ipc.maxsockbuf", largest)
	p.raise(v, Receiver, "net.inet.tcp.autorcvbufmax", p.WindowBytes)
	p.raise(v, Sender, "net.inet.tcp.autosndbufmax", p.SendBytes)
	if raised && largest > 6<<20 {
		p.warn("kern.ipc.maxsockbuf has a limit by memory, 6 to 32 MB; beyond it sysctl answers ERANGE: read the value back")
	}
	p.note("win_scale_factor 3 needs no change: the system raises it to fit")
}

func (p *Plan) freeBSD(v present) {
	// sys/kern/uipc_sockbuf.c: the limit is scaled by MCLBYTES / (MSIZE + MCLBYTES)
	p.raise(v, Both, "kern.ipc.maxsockbuf", int(math.Ceil(float64(p.largest())*2304/2048)))
	p.raise(v, Receiver, "net.inet.tcp.recvbuf_max", p.WindowBytes)
	p.raise(v, Sender, "net.inet.tcp.sendbuf_max", p.SendBytes)
	p.note("kern.ipc.maxsockbuf counts bookkeeping: 2048/2304 of it is usable")
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
