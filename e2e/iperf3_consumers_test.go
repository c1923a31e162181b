//go:build linux

package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// consumers are the programs of PyPI that read iperf3's output or speak its protocol.
var consumers = []string{"iperf3==0.1.11", "wiperf-poller==0.3.6", "timeout-decorator==0.5.0", "uiperf3==0.1.2"}

// python answers a command that runs testdata/consumers.py with the programs installed; CI
// has to be able to.
func python(t *testing.T) func(args ...string) *exec.Cmd {
	t.Helper()
	site := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "python3", append([]string{"-m", "pip", "install", "--quiet", "--no-deps",
		"--target", site}, consumers...)...).CombinedOutput()
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%v: %s", err, out)
		}
		t.Skipf("pip cannot install %v: %v", consumers, err)
	}
	return func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "python3", append([]string{filepath.Join("testdata", "consumers.py")},
			args...)...)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+site)
		return cmd
	}
}

// TestConsumersOfIperf3: a Python wrapper and a poller read the same figures of what we
// print as of what iperf3 prints, and another implementation's client tests with our server.
func TestConsumersOfIperf3(t *testing.T) {
	t.Parallel()
	ours, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	real, run := needIperf3(t), python(t)
	port := realPort(t)
	for _, options := range []string{"-n 2M", "-n 2M -R", "-n 1M -P 2", "-u -b 8M -l 1000 -n 100000",
		"-u -b 8M -l 1000 -t 1 -R"} {
		var all [2]map[string]map[string]any
		for i, program := range [][]string{{real}, {ours, "iperf3"}} {
			args := append(slices.Clone(program[1:]), "-c", "127.0.0.1", "-p", port, "-J")
			printed, err := exec.CommandContext(t.Context(), program[0], append(args, strings.Fields(options)...)...).Output()
			if err != nil {
				t.Fatalf("%v %s: %v\n%s", program, options, err, printed)
			}
			file := filepath.Join(t.TempDir(), "printed.json")
			if err := os.WriteFile(file, printed, 0o600); err != nil {
				t.Fatal(err)
			}
			read, err := run("read", file).Output()
			if err != nil || json.Unmarshal(read, &all[i]) != nil {
				t.Fatalf("%v %s: %v\n%s", program, options, err, read)
			}
		}
		for consumer, theirs := range all[0] {
			mine := all[1][consumer]
			if have, want := slices.Sorted(maps.Keys(mine)), slices.Sorted(maps.Keys(theirs)); len(want) == 0 ||
				!slices.Equal(have, want) {
				t.Errorf("%s %q: it finds %v, of iperf3's %v", consumer, options, have, want)
			}
			// What was asked for is what both moved; rates and times are each run's own.
			// (A server of 3.12 may end such a short test before it has counted all that arrived.)
			for _, key := range []string{"sent_bytes", "bytes", "packets", "protocol", "num_streams",
				"blksize", "error", "lost_packets"} {
				if timed := strings.Contains(options, "-t"); !timed && mine[key] != theirs[key] {
					t.Errorf("%s %q: %s is %v of ours, %v of iperf3's", consumer, options, key, mine[key], theirs[key])
				}
			}
		}
	}

	free := freePort(t)
	server := exec.CommandContext(t.Context(), ours, "iperf3", "-s", "-1", "-J", "-p", free)
	var printed strings.Builder
	server.Stdout = &printed
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	awaitListener(t, free)
	if out, err := run("test", "127.0.0.1", free).CombinedOutput(); err != nil {
		t.Errorf("uiperf3: %v\n%s", err, out)
	}
	server.Wait()
	var doc iperf3JSON
	if err := json.Unmarshal([]byte(printed.String()), &doc); err != nil || doc.Error != "" ||
		doc.End.Received.Bytes == 0 {
		t.Errorf("uiperf3's test: %v, %s", err, printed.String())
	}
}
