package text

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// programWindowText names a known program, its window and the setting that raises it.
func programWindowText(p *record.ProgramWindow) string {
	return fmt.Sprintf("%s keeps at most %s in flight, %s: %s", p.Name, units.Size(p.WindowBytes), p.Description, p.Raise)
}

func capturedExchanges(f figures) string {
	if f.has("answered_ratio") { // captured at the receiver of the blocks
		return fmt.Sprintf("each block of %s came a round trip after a message of this end: %.0f exchanges "+
			"of %s at a round trip of %s, waited for %s", f.size("block_bytes"), f["exchanges"], f.time("exchange_s"),
			f.time("rtt_s"), f.took())
	}
	turns := ""
	if f.has("in_turn") {
		turns = fmt.Sprintf(", %.0f at a time", f["in_turn"])
	}
	return fmt.Sprintf("each block of %s waited for a message of the other end: %.0f exchanges of %s%s at a round trip "+
		"of %s, %s", f.size("block_bytes"), f["exchanges"], f.time("exchange_s"), turns, f.time("rtt_s"), f.took()) +
		multiples(f, "as much in each, or as many at a time,")
}

func capturedProgramWindow(f figures) string {
	if f.has("came_bps") { // seen where the data comes
		return fmt.Sprintf("%s came, %s in each round trip of %s, and no loss or queue %s, though this end's window had "+
			"room (%s): the sending program has a window of that size", f.rate("came_bps"), f.size("program_window_bytes"),
			f.time("rtt_s"), f.took(), f.size("window_bytes"))
	}
	return fmt.Sprintf("the bytes in flight stayed at %s though the receiver's window had room (%s), and the other end "+
		"kept sending messages %s: the program has a window of its own, which allows %s at a round trip of %s",
		f.size("program_window_bytes"), f.size("window_bytes"), f.took(), f.rate("allows_bps"), f.time("rtt_s")) +
		multiples(f, "it, or connections side by side,")
}

// multiples formats the rates that more data in flight would give; "" if they are not known.
func multiples(f figures, size string) string {
	if !f.has("twice_bps") {
		return ""
	}
	text := fmt.Sprintf("; twice %s would give %s", size, f.rate("twice_bps"))
	if f.has("eightfold_bps") {
		text += ", eight times " + f.rate("eightfold_bps")
	}
	return text
}
