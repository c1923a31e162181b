// Package live tries verdicts, gains and the lab's fidelity on live kernel TCP. Its tests judge
// measurements, so they need a quiet machine: `make live` runs them, no ring of checks does. Their
// exact counterparts, on recordings and simulated paths, are in the packages that judge.
package live
