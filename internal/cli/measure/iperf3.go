package measure

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// habitFlags are iperf3's flags that have other names in measure. Each has iperf3's meaning.
type habitFlags struct {
	client  string
	port    uint16
	reverse bool
	buffers units.Size
	bitrate string
	length  units.Size
}

func (h *habitFlags) add(fl *pflag.FlagSet) {
	fl.StringVarP(&h.client, "client", "c", "", "same as iperf3's -c: another way to name "+
		"PEER")
	fl.Uint16VarP(&h.port, "port", "p", 0, "same as iperf3's -p: PEER's `port`")
	fl.BoolVarP(&h.reverse, "reverse", "R", false, "same as iperf3's -R: --direction down")
	fl.VarP(&h.buffers, "socket-buffers", "w", "same as iperf3's -w: sets --send-buffer and "+
		"--receive-buffer; 64K is 65,536 bytes")
	fl.StringVarP(&h.bitrate, "bitrate", "b", "", "same as iperf3's -b: the --write-rate of "+
		"each stream, or with --udp the --rate; 1M is 1,000,000 bit/s")
	fl.VarP(&h.length, "length", "l", "same as iperf3's -l: --write-size, or with --udp --datagram")
}

// translate sets measure's flags from iperf3's and returns the
// PEERs.
func (h *habitFlags) translate(cmd *cobra.Command, f *flags, args []string) ([]string, error) {
	given := cmd.Flags().Changed
	if h.client != "" {
		if len(args) > 0 {
			return nil, exit.Usage("-c", "names the peer that "+args[0]+" names already", "one of them")
		}
		args = []string{h.client}
	}
	if h.reverse {
		if given("direction") && f.Direction != "down" || f.bidir {
			return nil, exit.Usage("-R", "means --direction down, and another direction was asked for too", "one of them")
		}
		f.Direction = "down"
		if err := cmd.Flags().Set("direction", "down"); err != nil {
			return nil, err
		}
	}
	if given("port") {
		for i := range args {
			peer, err := withPort(args[i], h.port)
			if err != nil {
				return nil, err
			}
			args[i] = peer
		}
	}
	if err := h.sizes(cmd, f); err != nil {
		return nil, err
	}
	return args, h.rate(cmd, f)
}

// sizes are -w and -l.
func (h *habitFlags) sizes(cmd *cobra.Command, f *flags) error {
	given := cmd.Flags().Changed
	if given("socket-buffers") {
		switch {
		case given("send-buffer") || given("receive-buffer"):
			return exit.Usage("-w", "sets both buffers, and one of them was given too",
				"--send-buffer and --receive-buffer, or -w alone")
		case f.udp.on:
			return exit.Usage("-w", "is about TCP here", "leave it out with --udp")
		}
		f.send = h.buffers
		f.receive = h.buffers
	}
	if !given("length") {
		return nil
	}
	into := &f.write
	name := "write-size"
	if f.udp.on {
		into = &f.udp.datagram
		name = "datagram"
	}
	if given(name) {
		return exit.Usage("-l", "means --"+name+", which was given too", "one of them")
	}
	*into = h.length
	return nil
}

// rate is -b, which iperf3 counts for each stream.
func (h *habitFlags) rate(cmd *cobra.Command, f *flags) error {
	if h.bitrate == "" {
		return nil
	}
	if strings.Contains(h.bitrate, "/") {
		return exit.Usage("-b", "bursts are not paced here", "-b "+strings.SplitN(h.bitrate, "/", 2)[0]+
			" without the burst")
	}
	rate, err := units.ParseRate(h.bitrate)
	if err != nil {
		return exit.Usage("-b", exit.Plain(err), "-b 100M")
	}
	into := &f.writeRate
	name := "write-rate"
	if f.udp.on {
		into = &f.udp.rate
		name = "rate"
		rate *= units.Rate(max(f.parallel, 1))
	}
	if cmd.Flags().Changed(name) {
		return exit.Usage("-b", "means --"+name+", which was given too", "one of them")
	}
	*into = rate
	return nil
}

// withPort is a PEER with a port of its own.
func withPort(peer string, port uint16) (string, error) {
	scheme := ""
	host := peer
	if before, after, found := strings.Cut(peer, "://"); found {
		scheme = before + "://"
		host = after
	}
	switch {
	case port == 0:
		return "", exit.Usage("-p", "0 is no port", "-p 5201")
	case strings.HasPrefix(peer, lab.Prefix):
		return "", exit.Usage("-p", "a lab's far end listens where it is looked for", "leave it out")
	case scheme == "ssh://" || scheme == "http://" || scheme == "https://":
		return "", exit.Usage("-p", "this PEER's port is part of its address", scheme+"HOST:"+strconv.Itoa(int(port)))
	}
	if _, old, err := net.SplitHostPort(host); err == nil {
		if old != strconv.Itoa(int(port)) {
			return "", exit.Usage("-p", fmt.Sprintf("%s has a port already", peer), "one of them")
		}
		return peer, nil
	}
	return scheme + net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(int(port))), nil
}

// elsewhere are iperf3 flags without an equal in measure, and their replacements.
var elsewhere = map[string]string{
	"s": "fullpipe serve, or fullpipe iperf3 -s", "server": "fullpipe serve, or fullpipe iperf3 -s",
	"O":    "nothing: steady_goodput_bps is without the startup",
	"omit": "nothing: steady_goodput_bps is without the startup",
	"k":    "--bytes", "blockcount": "--bytes", "f": "nothing: every figure has its unit",
	"format": "nothing: every figure has its unit",
	"V":      "nothing: all details are printed", "verbose": "nothing: all details are printed",
	"S": "--dscp, which is the TOS byte divided by 4", "tos": "--dscp, which is the TOS byte divided by 4",
	"Z": "nothing: it costs no copy as it is", "zerocopy": "nothing: it costs no copy as it is",
	"F": "fullpipe exec -- your program", "file": "fullpipe exec -- your program",
	"fq-rate": "--pacing", "set-mss": "--mss", "get-server-output": "fullpipe iperf3 --get-server-output",
	"logfile": "> FILE",
	"T":       "--label", "title": "--label", "A": "taskset -c 1 fullpipe measure …",
	"affinity":   "taskset -c 1 fullpipe measure …",
	"timestamps": "--json-stream, or --csv", "forceflush": "nothing: every line is written at once",
	"connect-timeout": "nothing: it gives up after 10 s", "bind-dev": "--bind eth0",
	"cport": "nothing: the system chooses", "I": "nothing: no process stays", "pidfile": "nothing: no process stays",
	"debug": "nothing: all details are printed",
	"1":     "fullpipe iperf3 -s -1", "one-off": "fullpipe iperf3 -s -1",
	"username": "fullpipe iperf3 --username", "D": "contrib/fullpipe.service", "daemon": "contrib/fullpipe.service",
}

var unknownFlag = regexp.MustCompile(`^unknown (?:shorthand flag: '(.)' in |flag: --([\w-]+))`)

// flagError names the replacement of an iperf3 flag, or describes the fault of another one.
func flagError(cmd *cobra.Command, err error) error {
	if ours := ourWord(err); ours != "" {
		return exit.Usage(cmdflag.Complain(cmd, err.Error()).Argument, "is iperf3's", ours)
	}
	return cmdflag.Error(cmd, err)
}

// ourWord returns the replacement of an iperf3 flag, "" for any other.
func ourWord(err error) string {
	m := unknownFlag.FindStringSubmatch(err.Error())
	if m == nil {
		return ""
	}
	return elsewhere[m[1]+m[2]]
}
