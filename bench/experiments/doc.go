// Command experiments runs the experiments of the founding documents in the lab and writes docs/experiments.md:
// published figures, the arithmetic's expectation and the results of real TCP in one table. `make experiments` calls
// it.
package main
