package text

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Culprit is what limits a test from a browser, in its user's words.
type Culprit string

// The closed list.
const (
	YourLine   Culprit = "full line"
	Loss       Culprit = "loss"
	YourWindow Culprit = "your device's window"
	YourDevice Culprit = "your browser or device"
	OurServer  Culprit = "our server"
	TooShort   Culprit = "too short"
	NotKnown   Culprit = "not known"
)

// slackOfMany is the factor by which several connections must exceed one connection's rate to count as faster.
const slackOfMany = 1.25

// CulpritOf returns the culprit that limits one direction of a browser's test. The server measured it, so up
// is the browser's download.
func CulpritOf(d *record.Direction) Culprit {
	download := d.Direction == transfer.Up
	switch d.Limiter {
	case verdict.Bottleneck, verdict.AckPath:
		return YourLine
	case verdict.Congestion, verdict.MTUBlackHole:
		return Loss
	case verdict.SlowStart:
		return TooShort
	case verdict.ReceiverWindow:
		if download {
			return YourWindow
		}
		return OurServer
	case verdict.ReceiverApplication:
		if download {
			return YourDevice
		}
		return OurServer
	case verdict.Application, verdict.SendBuffer, verdict.LocalQueue, verdict.Pacing, verdict.CPU, verdict.Sender,
		verdict.NagleDelayedAck:
		if download {
			return OurServer
		}
		return YourDevice
	}
	return NotKnown
}

// BrowserSentence says in one sentence what limits one direction of a browser's test.
func BrowserSentence(d *record.Direction) string {
	test := "Your upload"
	if d.Direction == transfer.Up {
		test = "Your download"
	}
	if d.GoodputBps != nil {
		test += " of " + units.Rate(*d.GoodputBps).String()
	}
	is := "is"
	if d.Confidence == verdict.Low {
		is = "is probably"
	}
	switch CulpritOf(d) {
	case YourLine:
		return fmt.Sprintf("%s %s limited by a full line: that is what the path carries.", test, is)
	case Loss:
		if d.Subtype == verdict.Policer {
			return fmt.Sprintf("%s %s limited by a policer on the path: it drops all packets above that rate.", test, is)
		}
		return fmt.Sprintf("%s %s limited by loss: packets go missing on the way, and each time the sender slows down.",
			test, is)
	case YourWindow:
		return fmt.Sprintf("%s %s limited by your device's receive window: it allows no more data per round trip.", test, is)
	case YourDevice:
		return fmt.Sprintf("%s %s limited by your browser or device: the line would carry more.", test, is)
	case OurServer:
		return fmt.Sprintf("%s %s limited by this server, not by you.", test, is)
	case TooShort:
		return test + " was still speeding up when the test ended: it is too short for this path."
	}
	return test + ": the limiter is not known."
}

// SeveralSentence compares several concurrent connections with one; "" if that adds nothing.
func SeveralSentence(one, several *record.Direction) string {
	if one.GoodputBps == nil || several.GoodputBps == nil || *one.GoodputBps <= 0 {
		return ""
	}
	if *several.GoodputBps < slackOfMany**one.GoodputBps {
		return fmt.Sprintf("%d connections at once are no faster.", len(several.Streams))
	}
	reach := fmt.Sprintf("%d connections at once reach %s", len(several.Streams), units.Rate(*several.GoodputBps))
	if CulpritOf(several) == YourLine {
		return reach + ": one alone does not fill the line."
	}
	return reach + "."
}
