package iperf3

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/secret"
)

// detachedVariable is set in the background server. It writes to file 3 when its port is open.
const detachedVariable = "FULLPIPE_DETACHED"

const detachedReady = "ready"

func isDetached() bool { return os.Getenv(detachedVariable) != "" }

// detach starts the same command in the background and returns when its port is open. It prints an error of the
// child on standard error. (iperf3 itself prints none.)
func (f *flags) detach(cmd *cobra.Command) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	opened, ready, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	defer opened.Close()
	child := exec.Command(self, CalledAs(os.Args[0], os.Args[1:])...)
	child.Env = append(secret.Without(os.Environ(), secret.Key, secret.Store), detachedVariable+"=1")
	child.ExtraFiles = []*os.File{ready}
	complaint, err := child.StderrPipe()
	if err == nil {
		err = newSession(child)
	}
	if err == nil {
		err = child.Start()
	}
	ready.Close()
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	if said, _ := io.ReadAll(opened); string(said) == detachedReady {
		return child.Process.Release()
	}
	io.Copy(cmd.ErrOrStderr(), complaint)
	if err := child.Wait(); err != nil {
		return exit.Status(exit.Failed)
	}
	return errors.New("the server ended at once")
}

// signalReady reports to the parent that the port is open and closes the parent's files.
func (f *flags) signalReady(cmd *cobra.Command) error {
	ready := os.NewFile(3, "ready")
	_, err := ready.WriteString(detachedReady)
	if err := errors.Join(err, ready.Close()); err != nil {
		return fmt.Errorf("report that the port is open: %w", err)
	}
	if f.logFile == "" {
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
	}
	return nil
}
