// Command experiments runs the experiments of the founding documents in the lab and
// writes docs/experiments.md: published figures, what arithmetic expects and what real
// TCP did, side by side. `make experiments` calls it.
package main
