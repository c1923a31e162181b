package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/output"
	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

const (
	labPrefix = "lab:"
	// labVariable tells a command that runs inside a lab what its user called the peer.
	labVariable = "FULLPIPE_LAB"
)

// inLab runs this whole command line again inside the lab that PEER names, with a
// server at the far end: `measure lab:X` is exactly
// `lab X --far 'fullpipe serve' -- fullpipe measure $FULLPIPE_FAR`. It answers false
// when PEER names no lab.
func inLab(cmd *cobra.Command, text string) (bool, error) {
	profile, isLab := strings.CutPrefix(text, labPrefix)
	if !isLab {
		return false, nil
	}
	path, err := link.Parse(profile)
	if err != nil {
		return true, profileError(err)
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
	if flagged(cmd, "ipv6") {
		far.Addr = far.Addr6
		far.Outside = far.Outside6
	}
	way := func(a netip.Addr) string { return "fullpipe://" + netip.AddrPortFrom(a, peer.DefaultPort).String() }
	ways := []string{way(far.Addr)}
	if both, err := cmd.Flags().GetBool("compare"); err == nil && both {
		if far.Outside == far.Addr {
			return true, &usageError{"PEER", "this lab has one way to the far end, not two to compare", text + ",vpn=wireguard"}
		}
		ways = append(ways, way(far.Outside))
	}
	args = slices.Replace(args, i, i+1, ways...)

	signals := make(chan os.Signal, 16)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	defer signal.Stop(signals)
	env := []string{peer.KeyVariable + "=" + probe.NewKey().String(), labVariable + "=" + text}
	near, _ := cmd.Flags().GetBool("apply")
	if far, _ := cmd.Flags().GetBool("apply-far"); near || far {
		// What is changed inside ends with the lab, and so does the memory of it.
		state, remove, err := output.TempDir("fullpipe-lab-")
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
		Near: lab.Command{Args: append([]string{program}, args...), Env: env, Stdin: os.Stdin, Stdout: raw(cmd.OutOrStdout()),
			Stderr: raw(cmd.ErrOrStderr())},
		Far: lab.Command{Args: []string{program, "serve", "--quiet"}, Env: env,
			Stdout: raw(cmd.ErrOrStderr()), Stderr: raw(cmd.ErrOrStderr())},
		Signals: signals,
	}
	// Signals are the inner command's business, so they do not cancel.
	status, err := run.Do(context.WithoutCancel(cmd.Context()))
	deliver(cmd)
	if err == nil && status != 0 {
		err = exitStatus(status)
	}
	return true, err
}

// peerName is what the user called the peer.
func peerName(text string) string {
	if name := os.Getenv(labVariable); name != "" {
		return name
	}
	return text
}
