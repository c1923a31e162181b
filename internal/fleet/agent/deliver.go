package agent

import (
	"context"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
)

// Waits between deliveries that failed.
const (
	minRetry    = 500 * time.Millisecond
	maxRetry    = 30 * time.Second
	deliverTime = 20 * time.Second
)

// deliver sends the outbox to the hub, whenever a result waits and the hub is reachable.
func (a *agent) deliver(ctx context.Context) {
	wait := minRetry
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
			wait = minRetry
		case <-timer.C:
		}
		later, err := a.deliverAll(ctx)
		switch {
		case err != nil:
			wait = min(2*wait, maxRetry)
			timer.Reset(wait)
		case later > 0:
			timer.Reset(min(max(later, minRetry), maxRetry))
		}
	}
}

// deliverAll sends all waiting results, the oldest first. later is set when the hub asks to wait.
func (a *agent) deliverAll(ctx context.Context) (later time.Duration, err error) {
	items, err := a.box.List()
	if err != nil {
		return 0, err
	}
	for _, item := range items {
		doc, _, err := a.box.Get(item.Name)
		if err != nil {
			a.event(Event{Kind: "failed", Run: item.ID(), Detail: err.Error()})
			continue // it stays for a person to look at
		}
		asking, cancel := context.WithTimeout(ctx, deliverTime)
		var receipt bus.Receipt
		err = a.conn.AskRaw(asking, bus.ResultKind, doc, &receipt)
		cancel()
		switch {
		case err != nil:
			return 0, err
		case receipt.Stored || receipt.Refused != "":
			if err := a.box.Remove(item.Name); err != nil {
				return 0, err
			}
			a.event(Event{Kind: "stored", Run: item.ID(), Detail: receipt.Refused})
		default:
			return max(receipt.Later, minRetry), nil
		}
	}
	return 0, nil
}
