package socklist

// kept is the state of each connection between two lists.
type kept[name comparable, of any] struct {
	all  map[name]*entry[of]
	turn uint
}

type entry[of any] struct {
	it   of
	turn uint
}

// begin begins a list.
func (k *kept[name, of]) begin() {
	k.turn++
	if k.all == nil {
		k.all = map[name]*entry[of]{}
	}
}

// get is what is remembered of a connection that was listed; the first time all its fields are 0.
func (k *kept[name, of]) get(n name) *of {
	h := k.all[n]
	if h == nil {
		h = &entry[of]{}
		k.all[n] = h
	}
	h.turn = k.turn
	return &h.it
}

// end forgets those that were not listed.
func (k *kept[name, of]) end() {
	for n, h := range k.all {
		if h.turn != k.turn {
			delete(k.all, n)
		}
	}
}
