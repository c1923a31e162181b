package text

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// cpuText formats "near 12 % of a core, far 30 %".
func cpuText(c *record.CPU) string {
	end := func(name string, process, starved *float64, copies *bool) string {
		if process == nil {
			return name + " not known"
		}
		text := fmt.Sprintf("%s %.0f %% of a core", name, 100**process)
		if starved != nil && *starved >= 0.05 {
			text += fmt.Sprintf(" (and waited for one %.0f %% of the time)", 100**starved)
		}
		if copies != nil && *copies {
			text += " with copies"
		}
		return text
	}
	return end("near", c.NearProcess, c.NearStarved, c.NearCopies) + ", " +
		end("far", c.FarProcess, c.FarStarved, c.FarCopies)
}
