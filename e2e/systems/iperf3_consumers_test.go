//go:build linux

package systems

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// consumers are the programs of PyPI that read iperf3's output or speak its protocol. Their own dependencies are
// named too, so that nothing else is installed.
var consumers = []string{"iperf3==0.1.11", "wiperf-poller==0.3.6", "timeout-decorator==0.5.0", "uiperf3==0.1.2",
	"iperf3-lib==0.4.1", "throughpy==0.1", "piperf3==0.0.11", "typer==0.29.2", "rich==15.0.0", "pydantic==2.14.3",
	"pydantic-core==2.50.4", "pydantic-settings==2.16.3", "annotated-types==0.8.0", "annotated-doc==0.0.7",
	"typing-extensions==4.16.0", "typing-inspection==0.4.5", "python-dotenv==1.2.4", "shellingham==1.5.4",
	"autoiperf3==0.1.2", "iperflexer==0.1.4", "markdown-it-py==4.3.0", "mdurl==0.1.2", "pygments==2.21.0", "pyyaml==6.0.3"}

// python returns a command that runs testdata/consumers.py with the programs installed.
func python(t *testing.T) func(args ...string) *exec.Cmd {
	t.Helper()
	testenv.Need(t, testenv.Python, testenv.Pip)
	site := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "python3", append([]string{"-m", "pip", "install", "--quiet", "--no-deps",
		"--ignore-requires-python", "--target", site}, consumers...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("pip cannot install %v: %v: %s", consumers, err, out)
	}
	return func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "python3", append([]string{filepath.Join("testdata", "consumers.py")},
			args...)...)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+site)
		return cmd
	}
}

// TestConsumersOfIperf3 checks that other programs read our output as they read iperf3's. A Python wrapper, a poller
// and a Prometheus exporter read the same figures from both, a front-end shows them (iperf3 before 3.19 has too few
// keys for it), a scraper and a parser of lines find the same, and one that runs both ends reports the same figures.
// Another implementation's client tests with our server.
func TestConsumersOfIperf3(t *testing.T) {
	t.Parallel()
	ours := harness.Program(t)
	real, run := testenv.Program(t, testenv.Iperf3), python(t)
	port := harness.StartIperf3(t)
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
			// Both programs moved the requested bytes; rates and times are each run's own. (A server of 3.12 may end such a
			// short test before it has counted all data that arrived.)
			for _, key := range []string{"sent_bytes", "bytes", "packets", "protocol", "num_streams",
				"blksize", "error", "lost_packets"} {
				if timed := strings.Contains(options, "-t"); !timed && mine[key] != theirs[key] {
					t.Errorf("%s %q: %s is %v of ours, %v of iperf3's", consumer, options, key, mine[key], theirs[key])
				}
			}
		}
	}

	bin := t.TempDir()
	if err := os.Symlink(ours, filepath.Join(bin, "iperf3")); err != nil {
		t.Fatal(err)
	}
	path := "PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")
	for _, streams := range []string{"1", "2"} {
		var found [2][]string
		for i, env := range [][]string{nil, {path}} {
			cmd := run("lines", port, "1", streams)
			cmd.Env = append(cmd.Env, env...)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("throughpy: %v\n%s", err, out)
			}
			found[i] = harness.Iperf3Shape(string(out))
		}
		if len(found[0]) < 3 || !slices.Equal(found[0], found[1]) {
			t.Errorf("throughpy with %s: of iperf3's %q, of ours %q", streams, found[0], found[1])
		}
	}
	var keys [2][]string
	for i, env := range [][]string{nil, {path}} {
		cmd := run("both", "127.0.0.1", harness.FreePort(t))
		cmd.Env = append(cmd.Env, env...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("autoiperf3: %v\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			key, _, _ := strings.Cut(line, "\t")
			keys[i] = append(keys[i], key)
		}
	}
	if len(keys[0]) < 20 || !slices.Equal(keys[0], keys[1]) {
		t.Errorf("autoiperf3: of iperf3's %q, of ours %q", keys[0], keys[1])
	}
	for _, options := range []string{"-n 2M", "-n 2M -R -P 2", "-u -n 200K"} {
		var found [2]string
		for i, program := range [][]string{{real}, {ours, "iperf3"}} {
			args := append(slices.Clone(program[1:]), "-c", "127.0.0.1", "-p", port)
			printed, err := exec.CommandContext(t.Context(), program[0], append(args, strings.Fields(options)...)...).Output()
			file := filepath.Join(t.TempDir(), "printed.txt")
			if err = errors.Join(err, os.WriteFile(file, printed, 0o600)); err != nil {
				t.Fatal(err)
			}
			read, err := run("text", file).Output()
			if err != nil {
				t.Fatalf("iperflexer: %v\n%s", err, read)
			}
			found[i] = string(read)
		}
		if !strings.Contains(found[0], "bandwidth") || found[0] != found[1] {
			t.Errorf("iperflexer %s: of iperf3's %s, of ours %s", options, found[0], found[1])
		}
	}
	for _, options := range []string{"", "-R", "-P 2"} {
		cmd := run(append([]string{"front", "client", "127.0.0.1", "-p", port, "-n", "2M", "--output-dir", bin, "--run-id",
			"front"}, strings.Fields(options)...)...)
		cmd.Env = append(cmd.Env, path, "COLUMNS=200")
		shown, err := cmd.CombinedOutput()
		results, _ := filepath.Glob(filepath.Join(bin, "*_front", "results.json"))
		whole := "Sent Data           │ 2.10 MB" // the client's count: a server of 3.12 may end before it has its own
		if options == "-R" {
			whole = "Received Data       │ 2.10 MB"
		}
		if err != nil || len(results) != 1 || !strings.Contains(string(shown), whole) {
			t.Errorf("piperf3 %s: %v, %v\n%s", options, err, results, shown)
		}
		for _, file := range results {
			os.Remove(file)
		}
	}

	free := harness.FreePort(t)
	server := exec.CommandContext(t.Context(), ours, "iperf3", "-s", "-1", "-J", "-p", free)
	var printed strings.Builder
	server.Stdout = &printed
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	harness.AwaitListener(t, free)
	if out, err := run("test", "127.0.0.1", free).CombinedOutput(); err != nil {
		t.Errorf("uiperf3: %v\n%s", err, out)
	}
	server.Wait()
	var doc harness.Iperf3Output
	if err := json.Unmarshal([]byte(printed.String()), &doc); err != nil || doc.Error != "" ||
		doc.End.Received.Bytes == 0 {
		t.Errorf("uiperf3's test: %v, %s", err, printed.String())
	}
}
