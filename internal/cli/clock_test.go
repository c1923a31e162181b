package cli

import (
	"context"
	"os"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/recheck"
)

// asOf runs recheck at another time and without waiting.
const asOf = "FULLPIPE_TEST_CLOCK"

// killedOnceKept has recheck end as by kill -9 when it has kept a result.
const killedOnceKept = "FULLPIPE_TEST_KILLED"

// clocked is a context with the clock that the environment asks for; nil where it asks for
// none.
func clocked() context.Context {
	begin, err := time.Parse(time.RFC3339, os.Getenv(asOf))
	if err != nil {
		return nil
	}
	started, slept := time.Now(), time.Duration(0)
	var kept func()
	if os.Getenv(killedOnceKept) != "" {
		kept = func() {
			self, _ := os.FindProcess(os.Getpid()) // it is there
			_ = self.Kill()
			select {}
		}
	}
	return recheck.WithClock(context.Background(), recheck.Clock{Kept: kept,
		Now: func() time.Time { return begin.Add(time.Since(started) + slept) },
		Sleep: func(ctx context.Context, d time.Duration) error {
			slept += d
			return ctx.Err()
		}})
}
