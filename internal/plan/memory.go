package plan

import "github.com/fullpipe-net/fullpipe/internal/units"

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

// fitMemory lowers the windows until all connections with full buffers fit into their share of the host's memory. The
// present ceilings of automatic buffers stay: net.ipv4.tcp_mem and its like bound all connections together.
func (p *Plan) fitMemory(v present) {
	share := float64(p.Path.MemoryBytes) * memoryShare
	if share <= 0 || float64(p.MemoryBytes) <= share {
		return
	}
	buffers := 1.0
	if p.Role == Both {
		buffers = 2
	}
	had := p.MemoryBytes
	pair := 2 * p.Path.MSS
	fitted := int(share/buffers/p.bufferPayload/float64(p.Path.Connections)) / pair * pair
	fitted = max(fitted, pair)
	least := fitted == pair
	full := p.ExpectedBps
	fittedSend := fitted
	if !p.fixed {
		window, inFlight := v.ceilings(p.Path.MSS)
		fitted = max(fitted, window/pair*pair)
		fittedSend = max(fittedSend, inFlight/pair*pair)
	}
	p.WindowBytes = min(max(p.WindowBytes, p.presentWindow), fitted)
	p.SendBytes = min(max(p.SendBytes, p.presentSend), fittedSend)
	size, short := p.shortSize()
	p.bounded = p.fixed || short
	p.derive()
	now := 0
	if p.Role.has(Receiver) {
		now = p.presentWindow
	}
	if p.Role.has(Sender) {
		now = max(now, p.presentSend)
	}
	code := MemoryShort
	args := []any{p.Path.Connections, plural(p.Path.Connections), units.Size(had), units.Size(p.Path.MemoryBytes)}
	switch {
	case p.largest() < now:
		code = MemoryLowers
		args = append(args, units.Size(p.largest()), units.Size(now))
	case short:
		code = MemoryBounds
		args = append(args, units.Size(size))
	}
	if loss := 1 - p.ExpectedBps/full; code != MemoryShort && loss >= 0.005 {
		code += belowPath
		args = append(args, units.Rate(p.ExpectedBps), 100*loss)
	}
	p.warn(code, args...)
	if fit := int64(share); p.MemoryBytes > fit && least {
		p.warn(MemoryTooSmall, units.Size(p.MemoryBytes),
			max(int(share/buffers/p.bufferPayload/float64(pair)), 1))
	}
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
