package sockops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/waits"
)

func run(ctx context.Context, cmd *exec.Cmd, cfg Config) (report *Report, err error) {
	for _, r := range cfg.Rules {
		if err := haveCongestion(r.Socket.Congestion); err != nil {
			return nil, err
		}
	}
	group, err := newCgroup()
	if err != nil {
		return nil, err
	}
	guard, err := group.supervise()
	if err != nil {
		group.remove()
		return nil, err
	}
	defer func() {
		group.remove()
		guard.end()
	}()
	most := readCeilings()
	hooks, err := attach(group.path, cfg, most)
	if err != nil {
		return nil, err
	}
	defer hooks.Close()
	watch, err := newWatcher(group, hooks.connections, cfg, most)
	if err != nil {
		return nil, err
	}
	defer watch.sockets.Close()
	ended, end, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ended.Close()

	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	defer signal.Stop(signals)
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.CgroupFD = int(group.dir.Fd())
	cmd.SysProcAttr.UseCgroupFD = true
	started := time.Now()
	if err := cmd.Start(); err != nil {
		end.Close()
		return nil, err
	}
	sampled := waits.Open()
	defer sampled.Close()
	sampled.Follow(cmd.Process.Pid)
	over := make(chan struct{})
	relayed := make(chan struct{})
	go func() {
		defer close(relayed)
		relay(ctx, cmd.Process.Signal, signals, over)
	}()
	go func() {
		_ = cmd.Wait() // cmd.ProcessState has the result
		close(over)
		end.Close()
	}()
	watchErr := watch.watch(int(ended.Fd()))
	<-over
	<-relayed
	report = &Report{Took: time.Since(started), Waits: sampled.Take(cmd.Process.Pid)}
	var leaveErr error
	report.Left, leaveErr = group.leave()
	if watchErr == nil {
		watchErr = watch.finish()
	}
	report.Connections = watch.connections()
	report.Missed = watch.missed
	report.Refused = watch.refused
	for _, err := range []error{watchErr, leaveErr} {
		if err != nil {
			report.Failures = append(report.Failures, err)
		}
	}
	return report, nil
}

// minKillInterval is the least time between two SIGTERMs that kill. Shells signal the group and the process at once:
// that counts as one.
const minKillInterval = time.Second

// relay forwards signals to the program until it ends. A second SIGTERM kills it.
func relay(ctx context.Context, send func(os.Signal) error, signals <-chan os.Signal, over <-chan struct{}) {
	done := ctx.Done()
	var asked time.Time // time of the first SIGTERM
	for {
		select {
		case <-over:
			return
		case <-done:
			done = nil
			_ = send(unix.SIGTERM)
		case s := <-signals:
			if (s == unix.SIGINT || s == unix.SIGQUIT) && inForeground() {
				continue // the terminal has sent it to the program too
			}
			switch {
			case s != unix.SIGTERM:
			case asked.IsZero():
				asked = time.Now()
			case time.Since(asked) >= minKillInterval:
				s = unix.SIGKILL
			}
			_ = send(s)
		}
	}
}

// inForeground reports whether this process is in its terminal's foreground group, which receives keyboard signals
// together with the program.
func inForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// haveCongestion loads a congestion control module; an eBPF program cannot.
func haveCongestion(name string) error {
	if name == "" {
		return nil
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	switch {
	case errors.Is(err, unix.ENOENT):
		known, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
		return fmt.Errorf("congestion control %q: this kernel has none of that name (it has: %s)", name, trimmed(known))
	case err != nil:
		return fmt.Errorf("congestion control %q: %w", name, err)
	}
	return nil
}

func trimmed(b []byte) string {
	for len(b) > 0 && b[len(b)-1] == '\n' {
		b = b[:len(b)-1]
	}
	return string(b)
}
