package timeline

import "slices"

type weighted struct{ value, weight float64 }

// quantile is the smallest value below which q of the weight lies.
func quantile(all []weighted, q float64) float64 {
	slices.SortFunc(all, func(a, b weighted) int {
		if a.value < b.value {
			return -1
		} else if a.value > b.value {
			return 1
		}
		return 0
	})
	total := 0.0
	for _, w := range all {
		total += w.weight
	}
	sum := 0.0
	for _, w := range all {
		sum += w.weight
		if sum >= q*total {
			return w.value
		}
	}
	return 0
}
