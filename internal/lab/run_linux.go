package lab

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// minKillInterval is the least time between a first SIGTERM and a second one that kills the near program. A shell that
// signals both the group and the process sends two at once.
const minKillInterval = time.Second

func run(ctx context.Context, r Run) (int, error) {
	l, err := Start(ctx, r.Config)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	if len(r.Far.Args) > 0 {
		r.Far.OwnGroup = true
		p, err := l.Far.Start(r.Far)
		if err != nil {
			return 0, fmt.Errorf("far command: %w", err)
		}
		l.Far.AwaitListener(ctx, p)
	}
	p, err := l.Near.Start(r.Near)
	if err != nil {
		return 0, err
	}
	seen := map[os.Signal]int{}
	var asked time.Time // time of the first SIGTERM
	for {
		select {
		case s := <-r.Signals:
			number, err := signalNumber(s)
			if err != nil {
				return 0, err
			}
			if s == unix.SIGTERM && !asked.IsZero() && time.Since(asked) >= minKillInterval {
				if err := p.Signal(unix.SIGKILL); err != nil {
					return 0, err
				}
				continue
			}
			if s == unix.SIGTERM && asked.IsZero() {
				asked = time.Now()
			}
			seen[s]++
			if _, err := l.engine.ask(request{Op: opForward, ID: p.id, Signal: number, Seen: seen[s]}); err != nil {
				return 0, err
			}
		case <-p.Done():
			status, err := p.Wait()
			if err == nil && r.AtEnd != nil {
				err = r.AtEnd(l)
			}
			return status, err
		}
	}
}
