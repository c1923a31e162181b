package farend

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/secret"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
)

// InLab runs this whole command line again inside the lab that PEER names, with a
// server at the far end: `measure lab:X` is exactly
// `lab X --far 'fullpipe serve' -- fullpipe measure $FULLPIPE_FAR`. It returns false
// when PEER names no lab.
func InLab(cmd *cobra.Command, text string) (bool, error) {
	profile, isLab := strings.CutPrefix(text, lab.Prefix)
	if !isLab {
		return false, nil
	}
	path, err := link.Parse(profile)
	if err != nil {
		return true, ProfileError(err)
	}
	program, err := os.Executable()
	if err != nil {
		return true, fmt.Errorf("find this program's own file: %w", err)
	}
	args := slices.Clone(os.Args[1:])
	i := slices.Index(args, text)
	if i < 0 {
		return true, fmt.Errorf("peer %q is not on the command line", text)
	}
	_, far := lab.Hosts(path)
	if console.IsSet(cmd, "ipv6") {
		far.Addr = far.Addr6
		far.Outside = far.Outside6
	}
	way := func(a netip.Addr) string { return "fullpipe://" + netip.AddrPortFrom(a, transfer.DefaultPort).String() }
	ways := []string{way(far.Addr)}
	if both, err := cmd.Flags().GetBool("compare"); err == nil && both {
		if far.Outside == far.Addr {
			return true, exit.Usage("PEER", "this lab has one way to the far end, not two to compare", text+",vpn=wireguard")
		}
		ways = append(ways, way(far.Outside))
	}
	args = slices.Replace(args, i, i+1, ways...)

	signals := make(chan os.Signal, 16)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	env := []string{secret.Key + "=" + probe.NewKey().String(), lab.PeerVariable + "=" + text}
	near, _ := cmd.Flags().GetBool("apply")
	if far, _ := cmd.Flags().GetBool("apply-far"); near || far {
		// Changes inside end with the lab, and so does their journal.
		state, remove, err := atomicfile.TempDir("fullpipe-lab-")
		if err != nil {
			return true, err
		}
		defer remove()
		if history, err := store.Dir(); err == nil { // that is kept
			env = append(env, store.Variable+"="+history)
		}
		env = append(env, "FULLPIPE_STATE="+state)
	}
	run := lab.Run{
		Config: lab.Config{Path: path},
		Near: lab.Command{Args: append([]string{program}, args...), Env: env, Stdin: os.Stdin,
			Stdout: console.Raw(cmd.OutOrStdout()),
			Stderr: console.Raw(cmd.ErrOrStderr())},
		Far: lab.Command{Args: []string{program, "serve", "--quiet", "--drops=auto"}, Env: env,
			Stdout: console.Raw(cmd.ErrOrStderr()), Stderr: console.Raw(cmd.ErrOrStderr())},
		Signals: signals,
	}
	// Signals are the inner command's business, so they do not cancel.
	status, err := run.Do(context.WithoutCancel(cmd.Context()))
	history.Deliver(cmd)
	if err == nil && status != 0 {
		err = exit.Status(status)
	}
	return true, err
}

// ProfileError returns the usage error of a profile that cannot be read.
func ProfileError(err error) error {
	var fault *link.Error
	if errors.As(err, &fault) {
		argument := "PROFILE"
		if fault.Argument != "profile" {
			argument += ": " + fault.Argument
		}
		return exit.Usage(argument, fault.Message, fault.Hint)
	}
	return exit.Usage("PROFILE", exit.Plain(err), "fullpipe lab list")
}

// CompletePeer offers labs and the kinds of PEER; hosts are the user's to know.
func CompletePeer(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all := []string{}
	for _, s := range peer.Schemes {
		all = append(all, s.Name+"://")
	}
	for _, name := range LabNames() {
		all = append(all, lab.Prefix+name)
	}
	return slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, begun) }),
		cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// LabNames returns the names of the lab's profiles.
func LabNames() (all []string) {
	for _, p := range link.Profiles() {
		all = append(all, p.Name)
	}
	return all
}

// Tuning returns how the path to the far end is tuned, by the flags that every command with a PEER has.
func (p *PeerFlags) Tuning() (cfg tune.Config, err error) {
	cfg.Directions, err = p.Directions()
	if err != nil {
		return cfg, err
	}
	route, err := p.Route()
	if err != nil {
		return cfg, err
	}
	cfg.Echo = Echo(route)
	cfg.Late = present.TooLate
	return cfg, nil
}

// Echo measures round trips to a host by a route. Values that it cannot get stay unknown.
func Echo(by socket.Route) func(ctx context.Context, to netip.AddrPort, rtt, spend time.Duration) (path.RoundTrips,
	path.MTU) {
	return func(ctx context.Context, to netip.AddrPort, rtt, spend time.Duration) (path.RoundTrips, path.MTU) {
		const every = 20 * time.Millisecond
		count := min(max(int(spend/(rtt+every)), 5), 20)
		trips, err := path.Ask(ctx, to, path.Config{Count: count, Every: every, Route: by})
		if err != nil {
			trips = path.RoundTrips{}
		}
		mtu, err := path.FindMTU(ctx, to.Addr(), path.Config{Timeout: 4*rtt + time.Second, Route: by})
		if err != nil {
			mtu = path.MTU{}
		}
		return trips, mtu
	}
}
