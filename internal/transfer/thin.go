package transfer

// Thin keeps at most n samples, spread evenly over the series, the first and the last
// among them. It works in place.
func Thin(samples []Sample, n int) []Sample {
	if len(samples) <= n || n < 2 {
		return samples
	}
	last := len(samples) - 1
	for i := range n {
		samples[i] = samples[i*last/(n-1)]
	}
	return samples[:n]
}
