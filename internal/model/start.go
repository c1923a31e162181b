package model

import "math"

// SlowStartRounds returns the round trips of a transfer that only slow start limits: the window doubles each RTT
// from InitialWindow (RFC 5681 section 3.1, RFC 6928).
func SlowStartRounds(bytes float64, mss int) int {
	if bytes <= 0 {
		return 0
	}
	return max(int(math.Ceil(math.Log2(bytes/float64(mss)/InitialWindow+1)-1e-9)), 1)
}
