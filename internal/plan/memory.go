package plan

import (
	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// memoryShare is the part of the main memory that bulk connections may fill on every system: half of tcp_mem's pressure
// mark, which Linux sets to a sixteenth of memory (net/ipv4/tcp.c tcp_init_mem()).
const memoryShare = 1.0 / 32

// memory returns the largest memory of all connections' buffers. A program that writes, or does not read, fills a
// buffer of fixed size. Automatic buffers follow the bytes in flight, which connections on one link share: its BDP and
// a queue of another BDP.
func (p *Plan) memory(window, send int) int64 {
	sum := func(window, send int) (bytes float64) {
		if p.Role.has(Receiver) {
			bytes += float64(window)
		}
		if p.Role.has(Sender) {
			bytes += float64(send)
		}
		return bytes * p.bufferPayload
	}
	full := sum(window, send) * float64(p.Path.Connections)
	if !p.fixed {
		full = min(full, shareOfLink*sum(p.neededWindow, p.neededSend))
	}
	return int64(full)
}

// shareOfLink is the number of BDPs that one link's connections have in flight: one on the path, one in its queue.
const shareOfLink = 2

// fitMemory warns if the buffers exceed their share of the host's memory, and lowers the windows for it. Fixed buffers
// are lowered until those of all connections fit. Automatic ones are bounded so that those of one connection fit:
// net.ipv4.tcp_mem and its like bound all connections together, and the present ceilings stay. Windows' levels and
// OpenBSD's buffers cannot be lowered to a size.
func (p *Plan) fitMemory(v present) {
	share := float64(p.Path.MemoryBytes) * memoryShare
	if share <= 0 || float64(p.MemoryBytes) <= share {
		return
	}
	had := p.MemoryBytes
	full := p.ExpectedBps
	connections := 1
	least := false
	pair := 2 * p.Path.MSS
	if p.fixed {
		connections = p.Path.Connections
		p.WindowBytes = max(p.WindowBytes, p.presentWindow)
		p.SendBytes = max(p.SendBytes, p.presentSend)
	}
	if family := v.target.Family; family != catalog.Windows && family != catalog.OpenBSD {
		payload := int(share / p.bufferPayload / float64(connections))
		window, send := p.split(payload)
		window = max(window/pair*pair, pair)
		send = max(send/pair*pair, pair)
		least = max(window, send) == pair
		if !p.fixed {
			presentWindow, presentSend := v.ceilings(p.Path.MSS)
			window = max(window, presentWindow)
			send = max(send, presentSend)
		}
		p.WindowBytes = min(p.WindowBytes, window)
		p.SendBytes = min(p.SendBytes, send)
	}
	p.bounded = true
	p.derive()
	p.warnMemory(had, full)
	if p.fixed && least && float64(p.MemoryBytes) > share {
		p.warn(MemoryTooSmall, units.Size(p.MemoryBytes),
			max(int(share*float64(p.Path.Connections)/float64(p.MemoryBytes)), 1))
	}
}

// split divides payload between the window and the send buffer of one connection: equal parts, unless one needs less.
func (p *Plan) split(payload int) (window, send int) {
	if p.Role != Both {
		return payload, payload
	}
	return max(payload/2, payload-p.SendBytes), max(payload/2, payload-p.WindowBytes)
}

// warnMemory says what the memory bounds: had is the memory of all connections, and full the goodput of one, without
// the bound.
func (p *Plan) warnMemory(had int64, full float64) {
	now := 0
	if p.Role.has(Receiver) {
		now = p.presentWindow
	}
	if p.Role.has(Sender) {
		now = max(now, p.presentSend)
	}
	size, short := p.shortSize()
	code := MemoryShort
	args := []any{p.Path.Connections, plural(p.Path.Connections), units.Size(had), units.Size(p.Path.MemoryBytes)}
	switch {
	case p.largest() < now:
		code = MemoryLowers
		args = append(args, units.Size(p.largest()).Exact(), units.Size(now).Exact())
	case short:
		code = MemoryBounds
		args = append(args, units.Size(size).Exact())
	}
	if left := p.ExpectedBps / full; code != MemoryShort && left <= 0.995 {
		code += belowPath
		args = append(args, units.Rate(p.ExpectedBps), 100*left)
	}
	p.warn(code, args...)
}

// shortSize returns the window or buffer of the role that lacks most of what the path needs, and whether it lacks any.
func (p *Plan) shortSize() (size int, short bool) {
	least := 1.0
	for _, of := range []struct {
		role         Role
		size, needed int
	}{{Receiver, p.WindowBytes, p.neededWindow}, {Sender, p.SendBytes, p.neededSend}} {
		if share := float64(of.size) / float64(of.needed); p.Role.has(of.role) && share < least {
			least = share
			size = of.size
		}
	}
	return size, least < 1
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
