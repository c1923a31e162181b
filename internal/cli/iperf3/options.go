package iperf3

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/farend"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	face "github.com/fullpipe-net/fullpipe/internal/render/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// missing are the unsupported options of iperf3 up to 3.21, each with the reason or the alternative.
var missing = []struct {
	name, short string
	value       bool // takes a value
	why         string
}{
	{"file", "F", true, "files are not sent; to measure a program that sends files: fullpipe " +
		"exec -- PROGRAM"},
	{"affinity", "A", true, "CPU affinity is not set; use taskset"},
	{"snd-timeout", "", true, "the system's timeouts apply"},
	{"debug", "d", false, "there is no debugging output; use --verbose"},
	{"mptcp", "m", false, "MPTCP is not measured here"},
	{"sctp", "", false, "SCTP is not measured here"},
	{"xbind", "X", true, "SCTP is not measured here"},
	{"nstreams", "", true, "SCTP is not measured here"},
	{"flowlabel", "L", true, "IPv6's flow label is the system's"},
	{"gsro", "", false, "segmentation offload of UDP is used where the system has it"},
	{"json-stream-full-output", "", false, "use --json-stream or --json"},
}

// addMissing adds the unsupported options, so that they are not reported as misspelt.
func addMissing(fl *pflag.FlagSet) {
	for _, m := range missing {
		fl.StringP(m.name, m.short, "", m.why)
		if !m.value {
			fl.Lookup(m.name).NoOptDefVal = " "
		}
		fl.Lookup(m.name).Hidden = true
	}
}

// missingText lists the unsupported options, a line each.
func missingText() string {
	var b strings.Builder
	for _, m := range missing {
		name := "--" + m.name
		if m.short != "" {
			name = "-" + m.short + ", " + name
		}
		fmt.Fprintf(&b, "  %-26s %s\n", name, m.why)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// run runs iperf3 as its command line says.
func (f *flags) run(cmd *cobra.Command) error {
	if f.version {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s (fullpipe %s)\n%s\nOptional features available: authentication\n",
			face.Version, build.Version(), systemInfo())
		return err
	}
	if err := f.check(cmd); err != nil {
		return err
	}
	if f.logFile != "" {
		log, err := atomicfile.Append(cmd.Context(), f.logFile)
		if err != nil {
			return present.FileError(cmd, "--logfile", err)
		}
		defer log.Commit()
		cmd.SetOut(render.NewWriter(log))
		cmd.SetErr(render.NewWriter(log))
	}
	if f.server.on {
		return f.serve(cmd)
	}
	pid, err := f.writePID(cmd)
	if err != nil {
		return err
	}
	defer pid.Remove()
	return f.connect(cmd)
}

// check checks the options of both ends against iperf3's ranges.
func (f *flags) check(cmd *cobra.Command) (err error) {
	switch {
	case f.server.on && f.client != "":
		return usageError("cannot be both server and client", "-c or -s")
	case !f.server.on && f.client == "":
		return usageError("must either be a client (-c) or server (-s)", "-c HOST, or -s")
	case f.port == 0:
		return usageError(iperf3BadPort, "-p 5201")
	case f.interval != 0 && (f.interval < 0.1 || f.interval > 60):
		return usageError("invalid report interval (min = 0.1, max = 60 seconds)", "-i 1, or 0 for none")
	case len(f.format) > 1 || f.format != "" && !strings.Contains("kmgtKMGT", f.format):
		return usageError("bad format specifier (valid formats are in the set [kmgtKMGT])", "-f m")
	case f.only4 && f.only6:
		return exit.Usage("-4", "-6 is the other one", "one of them")
	case f.receiveTimeoutMs < 100 || f.receiveTimeoutMs > 86400000:
		return usageError("receive timeout value is incorrect or not in range", "--rcv-timeout of 100 to 86400000 ms")
	case !f.server.on && !f.reverse && cmd.Flags().Changed("rcv-timeout"):
		return usageError("client receive timeout is valid only in receiving mode", "--rcv-timeout with -R")
	case f.server.on && strings.Contains(f.bind, "%"):
		return exit.Usage("-B", "a server listens at an address, not at an interface", "-B ADDRESS")
	}
	for _, n := range []struct {
		flag            string
		value, min, max int
		unit            string
	}{
		{"--server-max-duration", f.server.maxTime, 0, iperf3.MaxTime, "s"},
		{"--idle-timeout", f.server.idle, 0, iperf3.MaxTime, "s"},
		{"--time-skew-threshold", f.server.skew, 1, iperf3.MaxTime, "s"},
		{"--connect-timeout", f.timeout, 0, 1000 * iperf3.MaxTime, "ms"},
	} {
		if n.value < n.min || n.value > n.max {
			return exit.Usage(n.flag, fmt.Sprintf("%d is out of range", n.value),
				fmt.Sprintf("%d to %d %s", n.min, n.max, n.unit))
		}
	}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		role := ""
		name := "--" + flag.Name
		if roles := flag.Annotations[iperf3Role]; len(roles) > 0 {
			role = roles[0]
		}
		switch {
		case role == "none":
			err = exit.Usage(name, "is not supported here", flag.Usage)
		case role == "client" && f.server.on:
			err = usageError("some option you are trying to set is client only", "-s without "+name)
		case role == "server" && !f.server.on:
			err = usageError("some option you are trying to set is server only", "-s with "+name)
		}
	})
	return err
}

// usageError returns a command-line error with iperf3's text.
func usageError(words, try string) error { return exit.Usage("", words, try) }

const iperf3BadPort = "port number must be between 1 and 65535 inclusive"

// flagError keeps pflag's text for usageMessage.
func flagError(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		return cmdflag.Error(cmd, err)
	}
	return exit.Usage(cmd.CommandPath(), err.Error(), cmd.CommandPath()+" --help")
}

// usageMessage returns iperf3's text for a command-line error, or ours if it has none.
func usageMessage(f record.Failure) string {
	for _, one := range cmdflag.Complaints {
		if m := one.Match.FindStringSubmatch(f.Message); m != nil {
			return fmt.Sprintf(one.Getopt, m[1])
		}
	}
	switch f.Argument {
	case "":
		return "parameter error - " + f.Message
	case "--port":
		return "parameter error - " + iperf3BadPort
	}
	return "parameter error - " + f.Argument + ": " + f.Message
}

// writePID writes the process id to --pidfile. Remove deletes the file.
func (f *flags) writePID(cmd *cobra.Command) (*atomicfile.File, error) {
	if f.pidFile == "" {
		return nil, nil
	}
	file, err := atomicfile.Create(cmd.Context(), f.pidFile)
	if err == nil {
		defer file.Discard()
		_, err = fmt.Fprint(file, os.Getpid())
	}
	if err == nil {
		err = file.Commit()
	}
	return file, present.FileError(cmd, "--pidfile", err)
}

// route returns the route of a client's connections: -B's address and interface, --bind-dev and the interface
// after % in -c.
func (f *flags) route() (socket.Route, error) {
	bind, device := splitDevice(f.bind)
	_, host := splitDevice(f.client)
	route, err := (&farend.PeerFlags{Bind: bind, Only4: f.only4, Only6: f.only6}).Route()
	for _, one := range []string{device, host, f.device} {
		switch {
		case one == "" || err != nil || one == route.Device:
		case route.Device != "":
			return route, exit.Usage("--bind-dev", "two interfaces are named: "+route.Device+" and "+one, "one of them")
		default:
			route.Device = one
		}
	}
	return route, err
}

// splitDevice splits HOST%INTERFACE. The % of a link-local address stays with the address.
func splitDevice(text string) (host, device string) {
	host, device, found := strings.Cut(text, "%")
	if at, err := netip.ParseAddr(strings.Trim(host, "[]")); !found || err == nil && at.IsLinkLocalUnicast() {
		return text, ""
	}
	return host, device
}

func (f *flags) host() string {
	host, _ := splitDevice(f.client)
	return host
}

func (f *flags) address() string {
	return net.JoinHostPort(strings.Trim(f.host(), "[]"), strconv.Itoa(int(f.port)))
}

// cNumber parses a number as C does: 52, 064 and 0x34 are equal.
type cNumber int

func (n *cNumber) String() string { return strconv.Itoa(int(*n)) }

func (n *cNumber) Type() string { return "int" }

func (n *cNumber) Set(text string) error {
	v, err := strconv.ParseInt(text, 0, 32)
	if err != nil {
		return fmt.Errorf("%q is no number", text)
	}
	*n = cNumber(v)
	return nil
}

// strftime formats a time with the common conversions of strftime(3). Others stay unchanged.
func strftime(format string, at time.Time) string {
	words := map[byte]string{'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'e': "_2", 'H': "15", 'I': "03", 'M': "04",
		'S': "05", 'p': "PM", 'T': time.TimeOnly, 'F': time.DateOnly, 'D': "01/02/06", 'R': "15:04", 'b': "Jan", 'h': "Jan",
		'B': "January", 'a': "Mon", 'A': "Monday", 'Z': "MST", 'z': "-0700", 'c': "Mon Jan _2 15:04:05 2006",
		'x': "01/02/06", 'X': time.TimeOnly, 'j': "002"}
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i == len(format)-1 {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch word, known := words[format[i]]; {
		case known:
			b.WriteString(at.Format(word))
		case format[i] == 's':
			b.WriteString(strconv.FormatInt(at.Unix(), 10))
		case format[i] == '%':
			b.WriteByte('%')
		default:
			io.WriteString(&b, format[i-1:i+1])
		}
	}
	return b.String()
}

// Fail prints a start-up error in iperf3's format. The status is 1.
func Fail(err error, failure record.Failure, json bool, std console.Streams) int {
	said := failure.Message
	switch {
	case errors.Is(err, errServerStopped):
		said = err.Error()
	case failure.Code == "usage":
		said = usageMessage(failure)
	}
	if failure.Try != "" {
		said += " (try: " + failure.Try + ")"
	}
	if json {
		doc := face.Begin(nil, face.Options{System: systemInfo()})
		doc.Error = said
		present.JSON(std.Out, doc) // run reports write errors
		return exit.Failed
	}
	fmt.Fprintln(std.Err, "iperf3: "+render.Line(said))
	return exit.Failed
}
