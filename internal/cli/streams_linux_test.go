package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// printing are command lines that print on standard output, one for each form of each
// command that needs no far end.
func printing(t *testing.T) [][]string {
	plain := [][]string{
		{"--help"}, {"--version"}, {"help", "plan"}, {"plan", "--help"}, {"completion", "bash"},
		{"plan", "--rate", "100mbit", "--rtt", "40ms"},
		{"plan", "--window", "64KiB", "--rtt", "40ms"},
		{"plan", "--rate", "100mbit", "--rtt", "40ms", "--target", "windows-2000", "--format", "reg"},
		{"predict", "--rate", "100mbit", "--rtt", "40ms"},
		{"explain"}, {"explain", "tcp_rmem"},
		{"audit"}, {"audit", "--collect"}, {"audit", "--collector", "sh"},
		{"status"}, {"undo"}, {"lab", "list"},
	}
	captures, err := filepath.Glob("../../internal/*/testdata/short.*.pcap.zst")
	if err != nil || len(captures) == 0 {
		t.Fatalf("no capture to diagnose: %v", err)
	}
	plain = append(plain, []string{"diagnose", captures[0]}, []string{"diagnose", captures[0], "--csv"},
		[]string{"diagnose", captures[0], "--details"})
	all := plain
	for _, args := range plain {
		if args[0] != "completion" && args[0] != "help" && !strings.HasPrefix(args[len(args)-1], "--") {
			all = append(all, append([]string{"--json"}, args...))
		}
	}
	return all
}

func TestTextThatCannotBeWrittenIsAFailure(t *testing.T) {
	t.Parallel()
	full := must.Get(os.OpenFile("/dev/full", os.O_WRONLY, 0))(t)
	defer full.Close()
	for _, args := range printing(t) {
		cmd := program(t, args...)
		cmd.Stdout = full
		status, errs := ended(t, cmd)
		if status != exit.Failed || !strings.Contains(errs, "standard output: no space left on device") ||
			strings.Count(errs, "no space left") != 1 {
			t.Errorf("%v > /dev/full: status %d, %q", args, status, errs)
		}
	}
}

func TestOutputFiles_UnwritableFilesFail(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.Lab)
	dir := t.TempDir()
	missing := filepath.Join(dir, "no", "such", "file")
	for _, tt := range []struct {
		status int
		args   []string
	}{
		{1, []string{"measure", "lab:lan-100m", "-t", "300ms", "--picture", "/dev/full"}},
		{2, []string{"measure", "lab:lan-100m", "-t", "300ms", "--picture", missing}},
		{1, []string{"sweep", "lab:lan-100m", "-t", "100ms", "--send-buffers", "automatic", "--receive-buffers", "64K",
			"--repeats", "1", "--html", "/dev/full"}},
		{2, []string{"rfc6349", "lab:lan-100m", "--html", missing}},
		{125, []string{"lab", "lan-100m", "--report", "/dev/full", "--", "true"}},
		{2, []string{"lab", "lan-100m", "--report", missing, "--", "true"}},
		{2, []string{"lab", "lan-100m", "--capture", missing, "--", "true"}},
		{125, []string{"lab", "lan-100m", "--capture", "/dev/full", "--", "true"}},
	} {
		status, errs := ended(t, program(t, tt.args...))
		if status != tt.status || !strings.Contains(errs, "--") && !strings.Contains(errs, "write capture") {
			t.Errorf("%v: status %d, want %d: %s", tt.args, status, tt.status, errs)
		}
	}
}

// TestOutputFiles_FailedCommandsLeaveNone runs commands that fail after their output file was checked.
func TestOutputFiles_FailedCommandsLeaveNone(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.Lab)
	dir := t.TempDir()
	missing := filepath.Join(dir, "no", "such", "file")
	name := filepath.Join(dir, "out")
	for _, args := range [][]string{
		{"sweep", "127.0.0.1:1", "--html", name},
		{"rfc6349", "127.0.0.1:1", "--html", name}, {"measure", "127.0.0.1:1", "--picture", name},
		{"measure", "127.0.0.1:1", "-d", "both", "--picture", name}, {"diagnose", "/dev/null", "--html", name},
		{"exec", "--report", name, "--", "/nonexistent"}, {"lab", "lan-100m", "--report", name, "--", "/nonexistent"},
		{"lab", "lan-100m", "--capture", name, "--report", missing, "--", "true"},
	} {
		if status, errs := ended(t, program(t, args...)); status == 0 {
			t.Errorf("%v: done: %s", args, errs)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Fatalf("%v left behind %v", args, left)
		}
	}
}

// TestAFullDiskKeepsNoEmptyFile: a file that does not fit on a disk is a failure, and no part of it stays.
func TestAFullDiskKeepsNoEmptyFile(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.Root, testenv.Lab, testenv.MountNamespace)
	const onFullDisk = `mount -t tmpfs -o size=4k none "$DISK" && head -c 4096 /dev/zero >"$DISK/ballast" || exit
"$@"; status=$?; ls -A "$DISK" | grep -v '^ballast$'; exit $status`
	disk := t.TempDir()
	name := filepath.Join(disk, "file")
	for _, args := range [][]string{
		{"sweep", "lab:lan-100m", "-t", "100ms", "--send-buffers", "automatic", "--receive-buffers", "64K", "--repeats", "1",
			"--html", name},
		{"measure", "lab:lan-100m", "-t", "300ms", "--picture", name},
		{"lab", "lan-100m", "--report", name, "--", "true"},
		{"lab", "lan-100m", "--capture", name, "--", "true"},
	} {
		p := program(t, args...)
		cmd := exec.Command("sh", slices.Concat([]string{"-c", onFullDisk, "sh", p.Path}, p.Args[1:])...)
		cmd.Env = append(p.Env, "DISK="+disk)
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		var left strings.Builder
		cmd.Stdout = &left
		status, errs := ended(t, cmd)
		if status == 0 || !strings.Contains(errs, "no space left") || strings.HasSuffix(left.String(), "file\n") {
			t.Errorf("%v: status %d, %q; %q", args, status, errs, left.String())
		}
	}
}

func TestEveryWaitEndsWithAnInterrupt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	must.Do(t, syscall.Mkfifo(fifo, 0o600))
	idle := filepath.Join(dir, "idle") // somebody has it open and writes nothing
	must.Do(t, syscall.Mkfifo(idle, 0o600))
	holder := must.Get(os.OpenFile(idle, os.O_RDWR, 0))(t)
	defer holder.Close()
	var waits [][]string
	proc := "/proc/kmsg" // a regular file by its mode, without an end
	if file, err := os.Open(proc); err == nil {
		file.Close()
		waits = append(waits, []string{"serve", "--listen", "127.0.0.1:0", "--keys", proc}, []string{"show", proc},
			[]string{"serve", "--listen", "127.0.0.1:0", "--web", "127.0.0.1:0", "--web-token-file", proc})
	}
	for _, name := range []string{fifo, idle, "-"} {
		waits = append(waits, []string{"diagnose", name}, []string{"audit", name})
	}
	waits = append(waits, []string{"apply", fifo}, []string{"measure", "127.0.0.1:1", "--key-file", idle},
		[]string{"serve", "--listen", "127.0.0.1:0", "--key-file", fifo},
		[]string{"ui", "--no-open", "--listen-cert", fifo, "--listen-key", fifo},
		[]string{"watch", "--listen", "127.0.0.1:0", "--listen-cert", idle, "--listen-key", idle},
		[]string{"plan", "--path", fifo}, []string{"plan", "--from", idle}, []string{"audit", "--path", fifo},
		[]string{"diagnose", "--near", fifo, "--far", idle})
	full := filepath.Join(dir, "full") // its reader does not read
	must.Do(t, syscall.Mkfifo(full, 0o600))
	unread := must.Get(os.OpenFile(full, os.O_RDWR, 0))(t)
	defer unread.Close()
	fill(t, unread)
	port := strconv.Itoa(testenv.FreePort(t, 1))
	for _, flag := range []string{"--pidfile", "--logfile"} {
		waits = append(waits, []string{"iperf3", "-s", "-p", port, flag, fifo},
			[]string{"iperf3", "-c", "127.0.0.1", "-p", "1", flag, fifo})
	}
	waits = append(waits, []string{"iperf3", "-s", "-p", port, "--logfile", full})
	waits = append(waits, []string{"sweep", "127.0.0.1:1", "--html", fifo}, []string{"measure", "127.0.0.1:1", "--picture",
		fifo},
		[]string{"rfc6349", "127.0.0.1:1", "--html", fifo}, []string{"diagnose", "/dev/null", "--html", fifo})
	for i, args := range waits {
		cmd := program(t, args...)
		in, other, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = in
		must.Do(t, cmd.Start())
		untilAsleep(t, cmd.Process.Pid)
		endsSoon(t, cmd, []os.Signal{os.Interrupt, syscall.SIGTERM}[i%2])
		in.Close()
		other.Close()
	}
}

// fill writes to a pipe until it takes no more.
func fill(t *testing.T, w *os.File) {
	t.Helper()
	raw := must.Get(w.SyscallConn())(t)
	var full error
	raw.Write(func(fd uintptr) bool { // does not block
		for full == nil {
			_, full = syscall.Write(int(fd), make([]byte, 4096))
		}
		return true
	})
	if full != syscall.EAGAIN {
		t.Fatal(full)
	}
}

// A reader of standard output that does not read delays an interrupt by a short time only.
func TestFullPipeEndsWithAnInterrupt(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	fill(t, w)
	cmd := program(t, "explain")
	cmd.Stdout = w
	must.Do(t, cmd.Start())
	untilAsleep(t, cmd.Process.Pid)
	cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		cmd.Process.Kill()
		t.Error("still writing 10 s after SIGTERM")
	}
	if cmd.ProcessState.ExitCode() != exit.Failed {
		t.Errorf("status %d: the text was lost", cmd.ProcessState.ExitCode())
	}
}

// untilAsleep waits until a process waits: all of its threads sleep for a while.
func untilAsleep(t *testing.T, pid int) {
	t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(pid), "task")
	for calm := 0; calm < 5; {
		tasks := must.Get(os.ReadDir(dir))(t)
		calm++
		for _, task := range tasks {
			text, err := os.ReadFile(filepath.Join(dir, task.Name(), "status"))
			if err == nil && strings.Contains(string(text), "State:\tZ") {
				t.Fatal("it has ended")
			}
			if err == nil && !strings.Contains(string(text), "State:\tS") {
				calm = 0
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}
