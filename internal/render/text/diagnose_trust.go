package text

import (
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/verdict/trust"
)

// TrustReasons returns a copy of t with the texts of its reasons.
func TrustReasons(t *trust.Trust) *trust.Trust {
	if t == nil {
		return nil
	}
	worded := *t
	worded.Reasons = slices.Clone(t.Reasons)
	for i := range worded.Reasons {
		worded.Reasons[i].Text = trustReason(&worded.Reasons[i])
	}
	return &worded
}

// TrustLine returns whether losses and times of a capture can be relied on: "loss yes, timing no (merged receive)".
func TrustLine(t *trust.Trust) string {
	text := "losses " + yesNo(&t.Loss) + ", timing " + yesNo(&t.Timing)
	var why []string
	for i := range t.Reasons {
		why = append(why, trustReason(&t.Reasons[i]))
	}
	if len(why) > 0 {
		text += " (" + strings.Join(why, ", ") + ")"
	}
	return text
}

// trustReason returns the text of a reason, or the code itself if it is unknown.
func trustReason(r *trust.Reason) string {
	share := func(name, text string) string { return percent(r.Values[name]) + text }
	switch r.Code {
	case trust.OneDirection:
		return "one direction only"
	case trust.NotCaptured:
		return share("missing_ratio", " not captured")
	case trust.HeadersCut:
		return share("cut_ratio", " cut before the TCP header")
	case trust.OptionsCut:
		return "SACK cut off in " + share("cut_ratio", " of the segments")
	case trust.MergedTransmit:
		return "merged transmit"
	case trust.MergedReceive:
		return "merged receive"
	case trust.Merged:
		return "merged segments"
	case trust.ClockSteps:
		return "clock set " + count(int(r.Values["steps"]), "time")
	case trust.CoarseClock:
		return "clock in steps of " + SecondsText(r.Values["grain_s"])
	case trust.Batched:
		return "stamped in batches, up to " + SecondsText(r.Values["grain_s"]) + " late"
	case trust.Duplicates:
		return share("duplicate_ratio", " captured twice")
	}
	return string(r.Code)
}
