// Package exec is the command exec: it sets the buffers of an unmodified program's connections.
package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/farend"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/secret"
	"github.com/fullpipe-net/fullpipe/internal/sockops"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Exit statuses as in a shell, for a CMD that did not run or was killed.
const (
	statusCannotRun = 126
	statusNotFound  = 127
	statusSignalled = 128 // plus the signal's number
)

type flags struct {
	all        socketFlags
	to         toFlags
	rules      []string
	ignore     bool
	reportFile string
}

// socketFlags are the settings of one rule; the system sizes a buffer with "auto".
type socketFlags struct{ send, receive, clamp, congestion, mss, pacing string }

// New returns the command exec.
func New() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "exec [flags] -- CMD [ARG...]",
		Short: "run a program with the TCP buffers that its paths need (Linux)",
		Long: `exec needs Linux 5.8 with cgroup v2, and root (or CAP_BPF, CAP_NET_ADMIN and
a writable cgroup). On other systems set the buffers in the program: fullpipe plan --format
go, c, python, java, dotnet or rust writes the code.

exec runs CMD in a cgroup of its own. eBPF programs set the buffers of every TCP connection
that CMD and its children open or accept, before the handshake fixes the window scale. No
setting of this host changes, and everything ends with CMD. At the end exec reports the
buffers and the limiter of each connection.

A rule for some destinations is DEST,KEY=VALUE,...: DEST is an address or a prefix, KEY one
of send-buffer, receive-buffer, window, congestion, mss, pacing. The longest prefix wins,
and the flags are the rule for all other destinations. --to PEER measures the path to PEER
first and adds a rule for PEER's address.

To run CMD as yourself: sudo fullpipe exec -- sudo -u "$USER" CMD. exec forwards signals to
CMD. A second SIGTERM, 1 s or more after the first, kills CMD. The exit status is CMD's, 125
if exec failed, 126 or 127 if CMD could not run.`,
		Example: `  sudo fullpipe exec --send-buffer 16MiB --congestion bbr -- rsync -a big/ host:big/
  sudo fullpipe exec --ignore-program-buffers -- nginx -g 'daemon off;'
  sudo fullpipe exec --to backup.example.net --key-file key -- rsync -a big/ backup.example.net:big/
  sudo fullpipe exec --rule 10.0.0.0/8,send-buffer=4MiB --rule 2001:db8::/32,congestion=bbr -- CMD`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	f.all.add(cmd)
	f.to.add(cmd)
	flags.StringArrayVar(&f.rules, "rule", nil, "`DEST,KEY=VALUE,...`: other settings for one destination (repeatable)")
	flags.BoolVar(&f.ignore, "ignore-program-buffers", false, "suppress CMD's own SO_SNDBUF and SO_RCVBUF calls")
	flags.StringVar(&f.reportFile, "report", "", "write the report to this file; as JSON with "+
		"--json or if the name ends in .json (default: text to standard error)")
	return cmd
}

func (s *socketFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.send, "send-buffer", "auto", "SO_SNDBUF, as 16MiB; auto leaves it to CMD and the system")
	flags.StringVar(&s.receive, "receive-buffer", "auto", "SO_RCVBUF, as 16MiB; auto leaves it to CMD and the system")
	flags.StringVar(&s.clamp, "window", "", "limit the receive window; automatic sizing stays on")
	flags.StringVar(&s.congestion, "congestion", "", "congestion control, for example bbr")
	flags.StringVar(&s.mss, "mss", "", "maximum segment size in bytes")
	flags.StringVar(&s.pacing, "pacing", "", "maximum send rate, for example 100mbit")
}

func (f *flags) run(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return exit.Usage("CMD", "no program to run", "fullpipe exec -- CMD ARG...")
	}
	rules, err := f.parse()
	if err != nil {
		return err
	}
	if done, err := farend.InLab(cmd, f.to.peer); done {
		return err
	}
	// The report's file is opened before CMD runs, so that an error stops exec first.
	file, err := present.CreateFile(cmd, "--report", f.reportFile)
	if err != nil {
		return err
	}
	defer file.Discard()
	if f.to.peer != "" {
		planned, err := f.to.rule(cmd)
		if err != nil {
			return err
		}
		if planned != nil && !slices.ContainsFunc(rules, func(r sockops.Rule) bool { return r.To == planned.To }) {
			rules = append(rules, *planned) // the user's rule wins
		}
	}
	program := exec.Command(args[0], args[1:]...)
	program.Stdin = cmd.InOrStdin()
	program.Stdout = console.Raw(cmd.OutOrStdout())
	program.Stderr = console.Raw(cmd.ErrOrStderr())
	program.Env = secret.Without(os.Environ())
	cfg := sockops.Config{Rules: rules, IgnoreProgramBuffers: f.ignore}
	// steer forwards signals to CMD; exec waits for its end.
	result, err := sockops.Run(context.WithoutCancel(cmd.Context()), program, cfg)
	if err != nil {
		return ownFailure(err)
	}
	status := programStatus(program.ProcessState)
	doc := report.Exec(present.Header(cmd), args, status, cfg, result)
	present.NoteLate(cmd, doc)
	if err := f.write(cmd, file, doc); err != nil {
		return ownFailure(err)
	}
	if status != 0 {
		return exit.Status(status)
	}
	return nil
}

// ownFailure returns err with the exit status of a CMD that could not run, or of a failure of exec.
func ownFailure(err error) error {
	status := exit.OwnFailure
	var start *exec.Error
	var path *fs.PathError
	if errors.As(err, &start) || errors.As(err, &path) && path.Op == "fork/exec" {
		status = statusCannotRun
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			status = statusNotFound
		}
	}
	return exit.WithStatus(err, status)
}

func programStatus(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return statusSignalled + int(ws.Signal())
	}
	return s.ExitCode()
}

func (f *flags) write(cmd *cobra.Command, file *atomicfile.File, doc *record.Exec) error {
	if file == nil && console.IsQuiet(cmd) {
		return nil
	}
	if file == nil {
		if console.WantsJSON(cmd) {
			return present.JSON(cmd.ErrOrStderr(), doc)
		}
		return text.Write(cmd.ErrOrStderr(), doc)
	}
	return present.WriteFile("--report", file, func(w io.Writer) error {
		if console.WantsJSON(cmd) || strings.HasSuffix(f.reportFile, ".json") {
			return present.JSON(w, doc)
		}
		return text.Write(w, doc)
	})
}

// parse returns the flags as rules: first the one for all destinations.
func (f *flags) parse() ([]sockops.Rule, error) {
	forAll, err := f.all.socket(func(key string) string { return "--" + key })
	if err != nil {
		return nil, err
	}
	var rules []sockops.Rule
	if forAll != (transfer.Socket{}) {
		rules = append(rules, sockops.Rule{Socket: forAll})
	}
	for _, text := range f.rules {
		r, err := parseRule(text)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	var wrong *sockops.RuleError
	if errors.As(sockops.Check(rules), &wrong) {
		return nil, ruleUsage(wrong)
	}
	return rules, nil
}

// ruleUsage returns the usage error of the argument with an invalid rule.
func ruleUsage(e *sockops.RuleError) error {
	argument := "--" + e.Setting
	if e.To.IsValid() {
		argument = "--rule " + strings.TrimSuffix(e.To.String()+","+e.Setting, ",")
	}
	return exit.Usage(argument, e.Message, "fullpipe exec --help")
}

func parseRule(text string) (sockops.Rule, error) {
	const example = "--rule 10.0.0.0/8,send-buffer=16MiB,congestion=bbr"
	dest, rest, found := strings.Cut(text, ",")
	to, err := netip.ParsePrefix(dest)
	if err != nil {
		var addr netip.Addr
		if addr, err = netip.ParseAddr(dest); err == nil {
			to = netip.PrefixFrom(addr, addr.BitLen())
		}
	}
	if err != nil {
		return sockops.Rule{}, exit.Usage("--rule", fmt.Sprintf("%q is neither an address nor a prefix", dest), example)
	}
	if !found {
		return sockops.Rule{}, exit.Usage("--rule", fmt.Sprintf("%q sets nothing", text), example)
	}
	var s socketFlags
	fields := map[string]*string{"send-buffer": &s.send, "receive-buffer": &s.receive, "window": &s.clamp,
		"congestion": &s.congestion, "mss": &s.mss, "pacing": &s.pacing}
	for _, pair := range strings.Split(rest, ",") {
		key, value, _ := strings.Cut(pair, "=")
		field := fields[key]
		if field == nil || value == "" {
			return sockops.Rule{}, exit.Usage("--rule", fmt.Sprintf("%q is not KEY=VALUE with a KEY of rules", pair),
				"send-buffer, receive-buffer, window, congestion, mss, pacing")
		}
		*field = value
	}
	socket, err := s.socket(func(key string) string { return "--rule " + dest + "," + key })
	return sockops.Rule{To: to, Socket: socket}, err
}

// socket returns the settings; name returns the argument of a key, for errors.
func (s *socketFlags) socket(name func(key string) string) (out transfer.Socket, err error) {
	size := func(key, text string, into *int) {
		if text == "" || text == "auto" || err != nil {
			return
		}
		v, parseErr := units.ParseSize(text)
		switch {
		case parseErr != nil:
			err = exit.Usage(name(key), parseErr.Error(), name(key)+" 16MiB, or auto")
		case v < 1 || v > 1<<30:
			err = exit.Usage(name(key), fmt.Sprintf("%s is not between 1 byte and 1 GiB", v), name(key)+" 16MiB, or auto")
		}
		*into = int(v)
	}
	size("send-buffer", s.send, &out.SendBuffer)
	size("receive-buffer", s.receive, &out.ReceiveBuffer)
	size("window", s.clamp, &out.Clamp)
	size("mss", s.mss, &out.MSS)
	if s.pacing != "" && err == nil {
		rate, parseErr := units.ParseRate(s.pacing)
		if parseErr != nil {
			err = exit.Usage(name("pacing"), parseErr.Error(), name("pacing")+" 100mbit")
		}
		out.PacingBps = float64(rate)
	}
	out.Congestion = s.congestion
	return out, err
}
