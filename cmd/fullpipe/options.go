package main

import (
	"regexp"

	"github.com/spf13/cobra"

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
	"Program.ReadBps": "--read-rate", "Program.RequestResponse": "--exchange"}

// cannotHave says which option of measure a far end refuses.
func cannotHave(u *transfer.Unsupported, try string) error {
	if option := optionOf[u.Field]; option != "" {
		return &usageError{option, "cannot be had: " + u.Why, try}
	}
	return &usageError{"PEER", "does not do that: " + u.Why, try}
}

// optionErrors are what pflag says of options, and what getopt says, as iperf3 does, and this
// program.
var optionErrors = []struct {
	match         *regexp.Regexp
	getopt, words string
}{
	{regexp.MustCompile(`unknown flag: (--[^ =]+)`), "unrecognized option '%s'", "no such option"},
	{regexp.MustCompile(`unknown shorthand flag: '(.)'`), "invalid option -- '%s'", "no such option"},
	{regexp.MustCompile(`flag needs an argument: (--[^ =]+)`), "option '%s' requires an argument", "needs a value"},
	{regexp.MustCompile(`flag needs an argument: '(.)'`), "option requires an argument -- '%s'", "needs a value"},
}

// optionError says what is wrong with an option, in pflag's words or, where they are known,
// plainly.
func optionError(cmd *cobra.Command, said string) *usageError {
	help := cmd.CommandPath() + " --help"
	for _, one := range optionErrors {
		if m := one.match.FindStringSubmatch(said); m != nil {
			option := m[1]
			if len(option) == 1 {
				option = "-" + option
			}
			return &usageError{option, one.words, help}
		}
	}
	return &usageError{cmd.Name(), said, help}
}
