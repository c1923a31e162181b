package text

import (
	"fmt"
	"strings"
)

func formatMemoryPressure(f figures) string {
	var ends []string
	for _, end := range []string{"sender", "receiver"} {
		if !f.has(end + "_times") {
			continue
		}
		text := fmt.Sprintf("at the %s %.0f time%s", end, f[end+"_times"], plural(int(f[end+"_times"])))
		if f.has(end + "_s") {
			text += ", " + f.time(end+"_s") + " in all"
		}
		ends = append(ends, text)
	}
	return "the kernel's TCP ran short of memory (net.ipv4.tcp_mem) " + strings.Join(ends, " and ") +
		": it closes windows and drops segments then, as a slow reader or a lossy path would"
}

func formatRunqueueWaited(f figures) string {
	var ends []string
	for _, end := range []string{"sender", "receiver"} {
		if !f.has(end + "_starved_ratio") {
			continue
		}
		share := f.share(end + "_starved_ratio")
		if len(ends) == 0 {
			share += " of the time"
		}
		ends = append(ends, share+" at the "+end)
	}
	return "a host was busy: a data thread was ready to run but had no CPU core " +
		"" + strings.Join(ends, ", ") +
		"; measure again when the host is idle"
}

func formatConcurrentTests(f figures) string {
	tests := "another test"
	if f["tests"] > 1 {
		tests = fmt.Sprintf("%.0f other tests", f["tests"])
	}
	return fmt.Sprintf("%s ran at the same far end meanwhile, for %s of this one's time: they share its path and its "+
		"host; measure again when nobody else does", tests, f.time("beside_s"))
}

func formatClockTrouble(f figures) string {
	var parts []string
	for _, end := range []string{"sender", "receiver"} {
		if step := f[end+"_step_s"]; step > 0 {
			parts = append(parts, fmt.Sprintf("the %s's clock was set forward by %s", end, SecondsText(step)))
		} else if step < 0 {
			parts = append(parts, fmt.Sprintf("the %s's clock was set back by %s", end, SecondsText(-step)))
		}
	}
	if drift := f["drift_ratio"]; drift != 0 {
		way := "faster"
		if drift < 0 {
			way = "slower"
			drift = -drift
		}
		parts = append(parts, fmt.Sprintf("the far end's clock ran %s %s than this host's, at the least", percent(drift),
			way))
	}
	return "the ends' times are not each other's: " + strings.Join(parts, ", ") +
		"; a host that was suspended or moved shows so too"
}

func formatLossWithoutCPU(f figures) string {
	return fmt.Sprintf("the rate did not last while a host was busy with other things, which says nothing of the path: "+
		"%s of the bytes were retransmitted, %s on average, %s at best (%s)", f.share("retransmitted_ratio"),
		f.rate("steady_bps"), f.rate("best_bps"), f.loaded())
}
