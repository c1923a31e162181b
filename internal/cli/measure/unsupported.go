package measure

import (
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// optionOf are measure's options by the field of a test that they ask for.
var optionOf = map[string]string{"Streams": "--parallel", "Time": "--time", "Bytes": "--bytes", "Size": "--datagram",
	"Bps": "--rate", "Search": "--capacity", "Direction": "--direction", transfer.FieldUDP: "--udp",
	transfer.FieldLegs: "--bidir", "Near.SendBuffer": "--send-buffer", "Far.SendBuffer": "--send-buffer",
	"Near.ReceiveBuffer": "--receive-buffer", "Far.ReceiveBuffer": "--receive-buffer", "Near.Clamp": "--window",
	"Far.Clamp": "--window", "Near.Congestion": "--congestion", "Far.Congestion": "--congestion", "Near.MSS": "--mss",
	"Far.MSS": "--mss", "Near.PacingBps": "--pacing", "Far.PacingBps": "--pacing", "Near.NoDelay": "--no-delay",
	"Far.NoDelay": "--no-delay", "Program.WriteBytes": "--write-size", "Program.WriteBps": "--write-rate",
	"Requests.RequestBytes": "--request-size", "Requests.ResponseBytes": "--response-size", "Requests.PerSecond": "--rate",
	"Program.ReadBps": "--read-rate", "Program.RequestResponse": "--exchange"}

// cannotHave says which option of measure a far end refuses.
func cannotHave(u *transfer.Unsupported, try string) error {
	if option := optionOf[u.Field]; option != "" {
		return exit.Usage(option, "cannot be had: "+u.Reason, try)
	}
	return exit.Usage("PEER", "does not do that: "+u.Reason, try)
}
