package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// noteLate adds to what was measured how late the lab was that it was measured in, if it
// was one, and who measured it when. A lab that cannot be asked is a note: the figures are there all the same.
func noteLate(cmd *cobra.Command, doc record.Document) {
	seal(cmd, doc)
	account, in, err := lab.Around()
	switch {
	case err != nil:
		note(cmd, "fullpipe: note: %v", err)
	case in:
		doc.Head().Late = newLate(account)
	}
}

// tooLate says that this runs in a lab that was too late to be believed.
func tooLate() bool {
	account, in, err := lab.Around()
	return err == nil && in && !account.Believable()
}

func newLate(a lab.Account) *record.Late {
	return &record.Late{LinkLate: newLinkLate(a.Worse()), Up: newLinkLate(a.Up), Down: newLinkLate(a.Down),
		RTTS: a.RTT.Seconds(), FloorS: a.Floor.Round(time.Microsecond).Seconds(), Believable: a.Believable()}
}

func newLinkLate(l lab.Late) record.LinkLate {
	seconds := func(d time.Duration) float64 { return d.Round(time.Microsecond).Seconds() }
	return record.LinkLate{P50S: seconds(l.P50), P99S: seconds(l.P99), MaxS: seconds(l.Max), Stalls: l.Stalls,
		StalledS: seconds(l.Stalled), WatchedS: seconds(l.Watched)}
}
