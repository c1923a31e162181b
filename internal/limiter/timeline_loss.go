package limiter

// quiet is how many slices without growth make a plateau.
const quiet = 20

// recoveries finds the slices in which the congestion window grew back from a loss: those
// soon after one, and all in which what was outstanding rose until the next. A limit of
// the sender's own does not rise; a congestion window does, in congestion avoidance by up
// to a segment a round (RFC 5681, 3.1), and with CUBIC less around its last size
// (RFC 9438, 4.2), so that only the whole way from loss to loss tells.
func recoveries(outstanding []float64, lost []bool) []bool {
	found := make([]bool, len(lost))
	for begin := range lost {
		if !lost[begin] {
			continue
		}
		end := begin + 1
		for end < len(lost) && !lost[end] {
			end++
		}
		until := min(begin+quiet, end)
		if grown := rising(outstanding[begin+1 : end]); grown > 0 {
			until = min(max(until, begin+1+grown+quiet), end)
			if end < len(lost) {
				until = end
			}
		}
		for i := begin; i < until; i++ {
			found[i] = true
		}
	}
	return found
}

// rising is after how many slices what was outstanding had reached its height, if it
// rose on the way, else 0. Away from the sender single slices scatter.
func rising(run []float64) int {
	const together, few, mostly, enough = 4, 3, 0.5, 1.04
	var means []float64
	for i := 0; i+together <= len(run); i += together {
		sum := 0.0
		for j := i; j < i+together; j++ {
			sum += run[j]
		}
		means = append(means, sum/together)
	}
	if len(means) < few {
		return 0
	}
	steps, top := 0, 0
	for i := 1; i < len(means); i++ {
		switch {
		case means[i] > means[i-1]:
			steps++
		case means[i] < means[i-1]:
			steps--
		}
		if means[i] > means[top] {
			top = i
		}
	}
	if float64(steps) < mostly*float64(len(means)-1) || means[top] < enough*means[0] {
		return 0
	}
	for i, mean := range means {
		if mean > 0.98*means[top] {
			return (i + 1) * together
		}
	}
	return 0
}
