package recheck

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/output"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/recheck/runner"
)

// charge is the file that charges a running test to the day's budgets. A killed process leaves it behind, and the test
// stays charged. It is removed when the test's result is in the history, or two days later.
type charge struct {
	file    *output.File
	id      string // of the test's run
	at      time.Time
	cost    recheck.Cost // expected; bytes grow with what the test moves
	unknown bool         // no test has shown the bytes yet: all that it may move are charged
}

const (
	// longestDay has a change of the clock in it. What is dated later was measured by a clock that was ahead.
	longestDay = 25 * time.Hour
	// keepCharge is more than two days of different zones can lie apart.
	keepCharge = 48 * time.Hour
)

const (
	chargeFiles = "recheck-charge-*"
	// chargeForm has the start in ns since 1970, the run's id, the bytes and the ns. Its length is fixed: a killed
	// process leaves a whole line.
	chargeForm = "fullpipe recheck charge 1 %019d %s %019d %019d\n"
)

// charge charges a test whose transfers are of a length in all.
func (k *rechecker) charge(o runner.Order, id string, length time.Duration) (*charge, error) {
	f, err := output.Temporary(k.dir, chargeFiles)
	if err != nil {
		return nil, err
	}
	c := &charge{file: f, id: id, at: o.At, cost: o.Cost}
	if c.cost.Bytes == 0 {
		c.unknown = true
		c.cost.Bytes = o.MostBytes
	}
	if c.cost.Time == 0 {
		c.cost.Time = length
	}
	if err := c.write(); err != nil {
		c.settle()
		return nil, err
	}
	return c, nil
}

func (c *charge) write() error {
	line := fmt.Appendf(nil, chargeForm, c.at.UnixNano(), c.id, c.cost.Bytes, int64(c.cost.Time))
	_, err := c.file.File().WriteAt(line, 0)
	return err
}

// moved raises the charge to the bytes that the test moved, the newest interval counted twice: a kill may end the next
// one.
func (c *charge) moved(bytes, newest int64) {
	bytes += newest
	if bytes > c.cost.Bytes || c.unknown {
		c.cost.Bytes = bytes
		c.unknown = false
		_ = c.write() // the charge stays as it was
	}
}

// settle removes the charge.
func (c *charge) settle() {
	_ = c.file.Remove() // its run is known by its id
}

// charged returns the cost of all charges of a day whose runs are in no account. It removes those that count on no day.
func (k *rechecker) charged(since time.Time) (all recheck.Cost) {
	names, _ := filepath.Glob(filepath.Join(k.dir, chargeFiles)) // the pattern is valid
	for _, name := range names {
		c, err := readCharge(name)
		if err != nil {
			continue
		}
		_, known := k.accounts[c.id]
		switch {
		case known, c.at.Before(since.Add(-keepCharge)):
			_ = output.RemoveLeft(name)
		case !c.at.Before(since) && c.at.Before(since.Add(longestDay)):
			all = all.Plus(c.cost)
		}
	}
	return all
}

// readCharge reads a charge. One that was not written in whole is of the file's time and costs nothing.
func readCharge(name string) (c charge, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return c, err
	}
	var ns, took int64
	if _, err := fmt.Sscanf(string(text), chargeForm, &ns, &c.id, &c.cost.Bytes, &took); err != nil {
		info, err := os.Lstat(name)
		if err != nil {
			return c, err
		}
		return charge{at: info.ModTime()}, nil
	}
	c.at = time.Unix(0, ns)
	c.cost.Time = time.Duration(took)
	return c, nil
}
