package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
)

// Use is what runs take of a host's limits.
type Use struct {
	Bytes       int64
	Time        time.Duration
	Connections int // outgoing ones of failed runs
}

func (u Use) plus(o Use) Use {
	return Use{u.Bytes + o.Bytes, u.Time + o.Time, u.Connections + o.Connections}
}

func (u Use) minus(o Use) Use {
	return Use{u.Bytes - o.Bytes, u.Time - o.Time, u.Connections - o.Connections}
}

// ledger counts what a day's runs use, also over restarts. A run is charged its maximum before its first byte, on the
// disk, and gets back the unused part at its end. After a kill the maximum stays charged.
type ledger struct {
	path string
	day  func(time.Time) time.Time // the day of a time
	mu   sync.Mutex
	date time.Time // the day of used
	used Use
	open Use // the part of used that is of runs that have not ended
}

// charge is the maximum of one run or transfer, until it is settled.
type charge struct {
	ledger  *ledger
	max     Use
	settled bool
}

// ledgerFile is the ledger's file.
type ledgerFile struct {
	Day         time.Time     `json:"day"`
	Bytes       int64         `json:"bytes"`
	TimeNs      time.Duration `json:"time_ns"`
	Connections int           `json:"connections,omitempty"`
}

func openLedger(ctx context.Context, dir string, limits Limits) (*ledger, error) {
	l := &ledger{path: filepath.Join(dir, "spent.json"), day: limits.Quiet.Day}
	text, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		// A directory that cannot be written to would let every restart begin with an empty ledger.
		return l, l.write(ctx)
	}
	if err != nil {
		return nil, err
	}
	var file ledgerFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w; remove it to begin the day's budgets anew", l.path, err)
	}
	l.date = file.Day
	l.used = Use{file.Bytes, file.TimeNs, file.Connections}
	return l, nil
}

// write writes the ledger to the disk. mu is locked, or nobody else has the ledger.
func (l *ledger) write(ctx context.Context) error {
	text, _ := json.Marshal(ledgerFile{l.date, l.used.Bytes, l.used.Time, l.used.Connections}) // numbers and a time
	return atomicfile.WritePrivate(ctx, l.path, append(text, '\n'))
}

// today returns what this day's runs have used, with the maximum of those that have not ended.
func (l *ledger) today(now time.Time) Use {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(now)
	return l.used
}

// turn begins a new day, with the runs that have not ended. A clock that was set back does not begin one.
func (l *ledger) turn(now time.Time) {
	if day := l.day(now); day.After(l.date) {
		l.date = day
		l.used = l.open
	}
}

// charge counts the maximum of a run or transfer. It is on the disk when charge returns without an error.
func (l *ledger) charge(now time.Time, maximum Use) (*charge, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(now)
	l.used = l.used.plus(maximum)
	if err := l.write(context.Background()); err != nil {
		l.used = l.used.minus(maximum)
		return nil, fmt.Errorf("count the day's budget: %w", err)
	}
	l.open = l.open.plus(maximum)
	return &charge{ledger: l, max: maximum}, nil
}

// settle replaces a charge by what was used. Later calls do nothing. If the file cannot be written, the maximum remains
// on the disk.
func (c *charge) settle(now time.Time, used Use) {
	l := c.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.settled {
		return
	}
	c.settled = true
	l.turn(now)
	l.open = l.open.minus(c.max)
	l.used = l.used.minus(c.max).plus(used)
	_ = l.write(context.Background())
}
