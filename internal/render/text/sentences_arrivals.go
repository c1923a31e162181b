package text

import "fmt"

func saySenderHadNothing(f figures) string {
	return "the sending program had nothing queued " + f.took()
}

func sayArrivesThroughAQueue(f figures) string {
	return fmt.Sprintf("%s arrived, and a queue stood in the path: small packets took %s meanwhile, %s at the least",
		f.rate("steady_bps"), f.time("rtt_s"), f.time("rtt_base_s"))
}

func sayArrivesWithHoles(f figures) string {
	return fmt.Sprintf("%s of the segments came after one that was missing, though no queue stood in the path (small "+
		"packets took %s, %s at the least): %s arrived, %s at best", f.share("out_of_order_ratio"), f.time("rtt_s"),
		f.time("rtt_base_s"), f.rate("steady_bps"), f.rate("best_bps"))
}

func saySenderRanLate(f figures) string {
	return fmt.Sprintf("the sending program was to run and did not %s: its device has other work or too little power; %s "+
		"arrived, and no queue stood in the path", f.took(), f.rate("steady_bps"))
}

func sayArrivesUnhindered(f figures) string {
	return fmt.Sprintf("%s arrived without a loss, without a queue (small packets took %s, %s at the least) and with "+
		"room in the window: nothing but its own host held the sender back", f.rate("steady_bps"), f.time("rtt_s"),
		f.time("rtt_base_s"))
}
