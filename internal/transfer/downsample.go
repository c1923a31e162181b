package transfer

// Downsample keeps at most n samples, spread evenly over the series, with the first and the last. It works in place.
func Downsample(samples []Sample, n int) []Sample {
	if len(samples) <= n || n < 2 {
		return samples
	}
	last := len(samples) - 1
	for i := range n {
		samples[i] = samples[i*last/(n-1)]
	}
	return samples[:n]
}
