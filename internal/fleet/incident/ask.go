package incident

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"
)

// sampleSize is how many pairs of a host, site or link are tested to know whether it is the cause.
const sampleSize = 8

// answer is whether a direction has been tested since a time.
type answer int

const (
	tested  answer = iota // since then
	pending               // due, or asked for now
	missing               // it gave no result, or may not be tested now
)

// ask returns whether a direction has been tested since a time, and makes its pair due if it has not and may be.
func (j *judging) ask(i int, s Symptom, since time.Time) answer {
	d := &j.Directions[i]
	if !d.Measured.Before(since) || s == Unreachable && d.Unreachable.Off && !d.Ended.Before(since) {
		return tested
	}
	if j.away[d.From] || j.away[d.To] {
		return missing
	}
	if j.pairs[d.Pair] {
		return pending
	}
	until := d.Asked.Add(Settle)
	again := d.Asked.Add(AskEvery)
	switch {
	case d.Asked.IsZero() || !j.Now.Before(again):
	case !d.Asked.Before(since) && !d.Ended.After(d.Asked) && j.Now.Before(until):
		j.wakeAt(until)
		j.waiting[d.Pair] = true
		return pending
	default:
		j.wakeAt(again)
		return missing
	}
	j.pairs[d.Pair] = true
	return pending
}

// compares reports whether a direction can have a symptom at all, as far as it is known.
func (j *judging) compares(i int, s Symptom) bool {
	d := &j.Directions[i]
	switch s {
	case Slow:
		return d.Goodput.Usual.Level > 0
	case Delayed:
		return d.RTT.Usual.Level > 0
	}
	return !d.Measured.IsZero()
}

// sample returns directions of a cause, of different pairs, in turn of each of its hosts.
func (j *judging) sample(c Cause, s Symptom) (all []int) {
	byHost := map[string][]int{}
	for _, i := range j.members[c] {
		if d := &j.Directions[i]; j.compares(i, s) && !j.away[d.From] && !j.away[d.To] {
			inside, _ := c.ends(d)
			byHost[inside] = append(byHost[inside], i)
		}
	}
	var hosts []string
	for h, some := range byHost {
		hosts = append(hosts, h)
		slices.SortFunc(some, func(a, b int) int { return j.order(a, b) })
	}
	slices.Sort(hosts)
	pairs := map[string]bool{}
	for turn := 0; len(hosts) > 0 && len(all) < sampleSize; turn++ {
		hosts = slices.DeleteFunc(hosts, func(h string) bool { return len(byHost[h]) <= turn })
		for _, h := range hosts {
			i := byHost[h][turn]
			if pair := j.Directions[i].Pair; !pairs[pair] && len(all) < sampleSize {
				pairs[pair] = true
				all = append(all, i)
			}
		}
	}
	return all
}

// order is a mixed order of directions, always the same.
func (j *judging) order(a, b int) int {
	return cmp.Or(cmp.Compare(score(j.Directions[a].Pair), score(j.Directions[b].Pair)), cmp.Compare(a, b))
}

func score(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	v := h.Sum64()
	v ^= v >> 33
	v *= 0xff51afd7ed558ccd
	return v ^ v>>33
}

// askAround makes the pairs due that share an end, a site or a link with a direction. waits reports whether some have
// no result yet, confirmed whether all have one.
func (j *judging) askAround(i int, s Symptom) (waits, confirmed bool) {
	confirmed = true
	for _, c := range j.Directions[i].causes() {
		if c.Kind != OneHost && c.Kind != OneSite && c.Kind != OneLink {
			continue // the pairs of these
		}
		for _, k := range j.sample(c, s) {
			switch j.ask(k, s, j.Directions[i].sign(s).Since) {
			case pending:
				waits = true
			case missing:
				confirmed = false
			}
		}
	}
	return waits, confirmed
}
