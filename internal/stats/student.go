package stats

import "math"

// Student returns the quantile p of Student's t distribution with dof degrees of freedom.
func Student(p, dof float64) float64 {
	if p < 0.5 {
		return -Student(1-p, dof)
	}
	low := 0.0
	high := 1.0
	for studentTail(high, dof) > 1-p && high < math.MaxFloat64/2 {
		low = high
		high *= 2
	}
	for range 36 {
		mid := (low + high) / 2
		if studentTail(mid, dof) > 1-p {
			low = mid
		} else {
			high = mid
		}
	}
	return (low + high) / 2
}

// studentTail returns the probability of a value above t ≥ 0 (NIST Digital Library of Mathematical Functions, 8.17).
func studentTail(t, dof float64) float64 {
	x := dof / (dof + t*t)
	a := dof / 2
	const b = 0.5
	if x > (a+1)/(a+b+2) { // the fraction converges slowly there
		return (1 - betaShare(1-x, b, a)) / 2
	}
	return betaShare(x, a, b) / 2
}

// betaShare returns the regularized incomplete beta function I_x(a, b) by its continued fraction (DLMF 8.17.22).
func betaShare(x, a, b float64) float64 {
	const terms = 20 // an error of 1e-9 at most, for any dof
	fraction := 1.0
	for m := float64(terms); m > 0; m-- {
		odd := -(a + m - 1) * (a + b + m - 1) * x / ((a + 2*m - 2) * (a + 2*m - 1))
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		fraction = 1 + odd/(1+even/fraction)
	}
	gammas, _ := math.Lgamma(a + b)
	gammaA, _ := math.Lgamma(a)
	gammaB, _ := math.Lgamma(b)
	return math.Exp(a*math.Log(x)+b*math.Log1p(-x)+gammas-gammaA-gammaB) / (a * fraction)
}
