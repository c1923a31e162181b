package lab

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// arena stores packets in flight outside of the garbage-collected heap. It hands out the most recently used chunk
// first, so a link with few packets stays in the CPU cache, and grows to a limit.
type arena struct {
	chunks []chunk
	free   []int32
	using  int32
	limit  int
}

type chunk struct {
	memory []byte
	used   int
	live   int // packets in it
}

const (
	chunkSize      = 512 << 10
	maxPacketBytes = virtioHeader + 65535 + 64 // bytes that one read may need
)

func newArena(limit int64) *arena { return &arena{using: -1, limit: int(limit/chunkSize) + 4} }

// room returns space for the next packet, or nil when the arena is full. The space stays free until keep is called.
func (a *arena) room() []byte {
	if a.using >= 0 {
		c := &a.chunks[a.using]
		if c.live == 0 {
			c.used = 0
		}
		if len(c.memory)-c.used >= maxPacketBytes {
			return c.memory[c.used:]
		}
	}
	next, ok := a.take()
	if !ok {
		return nil
	}
	a.using = next
	return a.chunks[next].memory
}

func (a *arena) take() (int32, bool) {
	if n := len(a.free); n > 0 {
		i := a.free[n-1]
		a.free = a.free[:n-1]
		return i, true
	}
	if len(a.chunks) >= a.limit {
		return 0, false
	}
	memory, err := unix.Mmap(-1, 0, chunkSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(fmt.Sprintf("lab: no memory for packets: %v", err))
	}
	a.chunks = append(a.chunks, chunk{memory: memory})
	return int32(len(a.chunks) - 1), true
}

// keep makes the first n bytes of the room a packet that lives until release.
func (a *arena) keep(n int) (chunk int32, packet []byte) {
	c := &a.chunks[a.using]
	packet = c.memory[c.used : c.used+n : c.used+n]
	c.used += n
	c.live++
	return a.using, packet
}

func (a *arena) release(i int32) {
	c := &a.chunks[i]
	c.live--
	if c.live == 0 && i != a.using {
		c.used = 0
		a.free = append(a.free, i)
	}
}
