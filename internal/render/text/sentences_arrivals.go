package text

import "fmt"

func formatSenderHadNothing(f figures) string {
	return "the sending program had nothing queued " + f.took()
}

// smallPackets formats the round trip of small packets, "" where it is not known.
func (f figures) smallPackets(format string) string {
	return f.roundTrip(format, ", %s at the least")
}

func formatArrivesThroughAQueue(f figures) string {
	return f.rate("steady_bps") + " arrived, through a standing queue" +
		f.smallPackets(": small packets took %s")
}

func formatArrivesWithHoles(f figures) string {
	return fmt.Sprintf("%s of the segments came after one that was missing, though the path had no queue%s: %s "+
		"arrived, %s at best", f.share("out_of_order_ratio"), f.smallPackets(" (small packets took %s)"),
		f.rate("steady_bps"), f.rate("best_bps"))
}

func formatSenderScheduledLate(f figures) string {
	return fmt.Sprintf("the sending program was ready to run and had no CPU %s: its device is busy or too slow; %s "+
		"arrived, and the path had no queue", f.took(), f.rate("steady_bps"))
}

func formatArrivesUnlimited(f figures) string {
	return fmt.Sprintf("%s arrived without a loss, without a queue%s and with room in the window: nothing but its own "+
		"host limited the sender", f.rate("steady_bps"), f.smallPackets(" (small packets took %s)"))
}
