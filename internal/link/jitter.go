package link

// jitter returns the deviation of the delay at time t. It interpolates linearly between random values that are two
// jitters apart.
func (l *Lane) jitter(t int64) int64 {
	j := int64(l.config.Jitter)
	if j == 0 {
		return 0
	}
	span := 2 * j
	k := t / span
	a := l.randomAt(k)
	b := l.randomAt(k + 1)
	return int64((a + (b-a)*float64(t-k*span)/float64(span)) * float64(j))
}

// randomAt returns the k-th random value of the jitter, uniform from −0.5 to 0.5.
func (l *Lane) randomAt(k int64) float64 {
	x := l.config.Seed + uint64(k)*0x9e3779b97f4a7c15 // splitmix64
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11)/(1<<53) - 0.5
}
