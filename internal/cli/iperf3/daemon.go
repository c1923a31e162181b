package iperf3

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
)

// detachedVariable tells a process that it is the server in the background; file 3 is then
// where it says that its port is open.
const detachedVariable = "FULLPIPE_DETACHED"

const detachedReady = "ready"

func isDetached() bool { return os.Getenv(detachedVariable) != "" }

// detach starts the same command again in the background and ends when its port is open.
// What keeps it from that comes on standard error. (iperf3 itself goes into the background
// first and tells nobody.)
func (f *iperf3Flags) detach(cmd *cobra.Command) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	opened, told, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	defer opened.Close()
	child := exec.Command(self, CalledAs(os.Args[0], os.Args[1:])...)
	child.Env = append(os.Environ(), detachedVariable+"=1")
	child.ExtraFiles = []*os.File{told}
	complaint, err := child.StderrPipe()
	if err == nil {
		err = leaveSession(child)
	}
	if err == nil {
		err = child.Start()
	}
	told.Close()
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

// standAlone says that the port is open and lets go of what the parent holds.
func (f *iperf3Flags) standAlone(cmd *cobra.Command) error {
	told := os.NewFile(3, "ready")
	_, err := told.WriteString(detachedReady)
	if err := errors.Join(err, told.Close()); err != nil {
		return fmt.Errorf("tell that the port is open: %w", err)
	}
	if f.logFile == "" {
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
	}
	return nil
}
