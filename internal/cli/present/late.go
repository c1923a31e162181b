package present

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// TooLate says that this runs in a lab that was too late to be believed.
func TooLate() bool {
	account, in, err := lab.Around()
	return err == nil && in && !account.Believable()
}

func newLate(a lab.Account) *record.Late {
	return &record.Late{LinkLate: NewLinkLate(a.Worse()), Up: NewLinkLate(a.Up), Down: NewLinkLate(a.Down),
		RTTS: a.RTT.Seconds(), FloorS: a.Floor.Round(time.Microsecond).Seconds(), Believable: a.Believable()}
}

// NewLinkLate returns a link's lateness as records have it.
func NewLinkLate(l lab.Late) record.LinkLate {
	seconds := func(d time.Duration) float64 { return d.Round(time.Microsecond).Seconds() }
	return record.LinkLate{P50S: seconds(l.P50), P99S: seconds(l.P99), MaxS: seconds(l.Max), Stalls: l.Stalls,
		StalledS: seconds(l.Stalled), WatchedS: seconds(l.Watched)}
}
