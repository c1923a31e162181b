package main

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
// stays charged. It is removed when the test's result is in the history.
type charge struct {
	file *output.File
	id   string // of the test's run
	at   time.Time
	cost recheck.Cost // expected; bytes grow with what the test moves
}

const (
	chargeFiles = "recheck-charge-*"
	// chargeForm has the start in ns since 1970, the run's id, the bytes and the ns. Its length is fixed: a killed
	// process leaves a whole line.
	chargeForm = "fullpipe recheck charge 1 %019d %s %019d %019d\n"
)

func (k *rechecker) charge(o runner.Order, id string) (*charge, error) {
	f, err := output.Temporary(k.dir, chargeFiles)
	if err != nil {
		return nil, err
	}
	c := &charge{f, id, o.At, o.Cost}
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

// moved raises the charge to the bytes that the test moved.
func (c *charge) moved(bytes int64) {
	if bytes > c.cost.Bytes {
		c.cost.Bytes = bytes
		_ = c.write() // the charge stays as it was
	}
}

// settle removes the charge.
func (c *charge) settle() {
	_ = c.file.Remove() // its run is known by its id
}

// charged returns the cost of all charges since a time whose runs are in no account.
func (k *rechecker) charged(since time.Time) (all recheck.Cost) {
	names, _ := filepath.Glob(filepath.Join(k.dir, chargeFiles)) // the pattern is valid
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		var ns, took int64
		var c charge
		if _, err := fmt.Sscanf(string(text), chargeForm, &ns, &c.id, &c.cost.Bytes, &took); err != nil {
			continue
		}
		if _, known := k.accounts[c.id]; !known && !time.Unix(0, ns).Before(since) {
			c.cost.Time = time.Duration(took)
			all = all.Plus(c.cost)
		}
	}
	return all
}
