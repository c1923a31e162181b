package link

// ring is a FIFO queue that keeps its memory.
type ring struct {
	slots      []segment // a power of two
	head, tail uint      // never reset; masked on use
}

func (r *ring) len() int { return int(r.tail - r.head) }

func (r *ring) front() *segment { return &r.slots[r.head&uint(len(r.slots)-1)] }

func (r *ring) push(s segment) {
	if r.len() == len(r.slots) {
		r.grow()
	}
	r.slots[r.tail&uint(len(r.slots)-1)] = s
	r.tail++
}

func (r *ring) pop() segment {
	s := *r.front()
	r.head++
	return s
}

func (r *ring) grow() {
	larger := make([]segment, max(256, 2*len(r.slots)))
	n := r.len()
	for i := range n {
		larger[i] = r.slots[(r.head+uint(i))&uint(len(r.slots)-1)]
	}
	r.slots = larger
	r.head = 0
	r.tail = uint(n)
}

// heap orders segments by due.
type heap []segment

func (h *heap) push(s segment) {
	*h = append(*h, s)
	a := *h
	for i := len(a) - 1; i > 0; {
		parent := (i - 1) / 2
		if a[parent].due <= a[i].due {
			return
		}
		a[parent], a[i] = a[i], a[parent]
		i = parent
	}
}

func (h *heap) pop() segment {
	a := *h
	top := a[0]
	last := len(a) - 1
	a[0] = a[last]
	a = a[:last]
	*h = a
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return top
		}
		if child+1 < last && a[child+1].due < a[child].due {
			child++
		}
		if a[i].due <= a[child].due {
			return top
		}
		a[i], a[child] = a[child], a[i]
		i = child
	}
}
