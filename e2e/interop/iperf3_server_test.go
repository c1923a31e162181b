//go:build linux

package interop

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// testedBy runs a server for one test of a real client. It returns the output of both and the client's exit status.
func testedBy(t *testing.T, server, client []string, env ...string) (serverOut, clientOut string, status int) {
	t.Helper()
	port := harness.FreePort(t)
	s := exec.CommandContext(t.Context(), server[0], append(server[1:], "-p", port)...)
	var out bytes.Buffer
	s.Stdout, s.Stderr = &out, &out
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	harness.AwaitListener(t, port)
	c := exec.CommandContext(t.Context(), client[0], append(client[1:], "-c", "127.0.0.1", "-p", port)...)
	c.Env = append(os.Environ(), env...)
	printed, _ := c.CombinedOutput()
	if !slices.Contains(server, "-1") {
		s.Process.Signal(syscall.SIGTERM)
	}
	s.Wait()
	return out.String(), string(printed), c.ProcessState.ExitCode()
}

// serverOptions are the options that real clients use with both servers.
var serverOptions = []string{"", "-P 2", "-R", "-R -P 2", "-n 2M", "-O 1 -i 0.5", "--bidir", "--bidir -P 2", "-u -b 5M",
	"-u -b 5M -R", "-u -b 5M -P 2", "-u -b 5M --bidir", "-T title --extra-data more"}

// TestIperf3ServerKeyByKey compares `fullpipe iperf3 -s --json` with iperf3's own output when the same client tests
// with it: every key, with its type.
func TestIperf3ServerKeyByKey(t *testing.T) {
	t.Parallel()
	ours := harness.Program(t)
	real := testenv.Program(t, testenv.Iperf3)
	for _, options := range serverOptions {
		t.Run(options, func(t *testing.T) {
			t.Parallel()
			client := serverOptionsClient(real, options)
			all := []map[string]string{{}, {}}
			for i, server := range [][]string{{real, "-s", "-1", "-J"}, {ours, "iperf3", "-s", "-1", "-J"}} {
				out, clientOut, status := testedBy(t, server, client)
				var doc map[string]any
				if err := json.Unmarshal([]byte(out), &doc); err != nil || status != 0 {
					t.Fatalf("%v, client's status %d\n%s\n%s", err, status, out, clientOut)
				}
				keysOf("", doc, all[i])
			}
			sameKeys(t, all[0], all[1])
		})
	}
}

// serverOptionsClient is a client with one of serverOptions that tests for a second, or moves the requested bytes, at
// a rate that leaves the machine to others.
func serverOptionsClient(real, options string) []string {
	client := append([]string{real, "--connect-timeout", "5000"}, strings.Fields(options)...)
	if !strings.Contains(options, "-n") {
		client = append(client, "-t", "1")
	}
	if !strings.Contains(options, "-u") {
		client = append(client, "-b", "20M")
	}
	return client
}

// TestIperf3ServerText compares the server's text, including all additions of -V, with the shape of iperf3's own,
// line by line.
func TestIperf3ServerText(t *testing.T) {
	t.Parallel()
	ours := harness.Program(t)
	real := testenv.Program(t, testenv.Iperf3)
	for _, options := range serverOptions {
		if strings.Contains(options, "-O") {
			continue // the two cut an omitted time differently
		}
		t.Run(options, func(t *testing.T) {
			t.Parallel()
			var shapes [2][]string
			for i, server := range [][]string{{real, "-s", "-1", "-V"}, {ours, "iperf3", "-s", "-1", "-q", "-V"}} {
				out, clientOut, status := testedBy(t, server, serverOptionsClient(real, options))
				if status != 0 {
					t.Fatalf("status %d\n%s\n%s", status, out, clientOut)
				}
				shapes[i] = saidOnce(harness.Iperf3Shape(out))
			}
			if !slices.Equal(shapes[0], shapes[1]) {
				t.Errorf("there\n%s\nhere\n%s", strings.Join(shapes[0], "\n"), strings.Join(shapes[1], "\n"))
			}
		})
	}
}

// TestIperf3Server_SendsItsOutput has real clients ask for our server's output, and ours for
// the real one's, as text and as JSON.
func TestIperf3Server_SendsItsOutput(t *testing.T) {
	t.Parallel()
	ours := harness.Program(t)
	real := testenv.Program(t, testenv.Iperf3)
	for _, ends := range [][2][]string{{{ours, "iperf3"}, {real}}, {{real}, {ours, "iperf3"}}} {
		for _, way := range []string{"", "-R"} {
			for _, asJSON := range []bool{false, true} {
				server := append(slices.Clone(ends[0]), "-s", "-1")
				if asJSON {
					server = append(server, "-J")
				}
				client := append(slices.Clone(ends[1]), "-t", "1", "-b", "20M", "-J", "--get-server-output")
				_, clientOut, status := testedBy(t, server, append(client, strings.Fields(way)...))
				var doc struct {
					Text   string `json:"server_output_text"`
					Object *struct {
						End struct {
							Sent     harness.Iperf3Sum `json:"sum_sent"`
							Received harness.Iperf3Sum `json:"sum_received"`
						}
					} `json:"server_output_json"`
				}
				if err := json.Unmarshal([]byte(clientOut), &doc); err != nil || status != 0 {
					t.Fatalf("%v: %v, status %d\n%s", server, err, status, clientOut)
				}
				switch {
				case asJSON && (doc.Object == nil || max(doc.Object.End.Sent.Bytes, doc.Object.End.Received.Bytes) < 1e6):
					t.Errorf("%v %s: %s", server, way, clientOut)
				case !asJSON && (!strings.HasPrefix(doc.Text, "Accepted connection from 127.0.0.1, port ") ||
					!strings.Contains(doc.Text, map[string]string{"": "receiver", "-R": "sender"}[way])):
					t.Errorf("%v %s: %q", server, way, doc.Text)
				}
			}
		}
	}
}

// logins creates a key pair with openssl(1) and a users file, as in iperf3's manual.
func logins(t *testing.T) (private, public, users string) {
	t.Helper()
	testenv.Need(t, testenv.OpenSSL)
	dir := t.TempDir()
	private, public = filepath.Join(dir, "private.pem"), filepath.Join(dir, "public.pem")
	users = filepath.Join(dir, "users")
	for _, args := range [][]string{{"genrsa", "-out", private, "2048"},
		{"rsa", "-in", private, "-pubout", "-out", public}} {
		if out, err := exec.CommandContext(t.Context(), "openssl", args...).CombinedOutput(); err != nil {
			t.Fatalf("openssl %v: %v\n%s", args, err, out)
		}
	}
	// printf '{mario}rossi' | sha256sum
	const line = "mario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n"
	if err := os.WriteFile(users, []byte("# comment\n"+line), 0o600); err != nil {
		t.Fatal(err)
	}
	return private, public, users
}

// TestIperf3ServerWantsLogins checks that a real client of 3.12 (PKCS#1) and ours (both paddings) log in. A wrong
// password is refused in iperf3's words, and does not use up -1.
func TestIperf3ServerWantsLogins(t *testing.T) {
	t.Parallel()
	ours := harness.Program(t)
	real := testenv.Program(t, testenv.Iperf3)
	private, public, users := logins(t)
	guard := []string{"-s", "--rsa-private-key-path", private, "--authorized-users-path", users}
	login := []string{"-n", "100K", "--username", "mario", "--rsa-public-key-path", public}
	pkcs1 := "--use-pkcs1-padding"
	for _, c := range []struct {
		name           string
		server, client []string
		password       string
		status         int
	}{
		{"ours, real client", []string{ours, "iperf3", pkcs1}, []string{real}, "rossi", 0},
		{"ours, real client, wrong", []string{ours, "iperf3", pkcs1}, []string{real}, "verdi", 1},
		{"ours, real client, OAEP wanted", []string{ours, "iperf3"}, []string{real}, "rossi", 1},
		{"ours, our client, PKCS#1", []string{ours, "iperf3", pkcs1}, []string{ours, "iperf3", pkcs1}, "rossi", 0},
		{"ours, our client, OAEP", []string{ours, "iperf3"}, []string{ours, "iperf3"}, "rossi", 0},
		{"ours, our client, wrong", []string{ours, "iperf3"}, []string{ours, "iperf3"}, "verdi", 1},
		{"ours, a clock bound", []string{ours, "iperf3", "--time-skew-threshold", "60"}, []string{ours, "iperf3"}, "rossi",
			0},
		{"real, our client", []string{real}, []string{ours, "iperf3", pkcs1}, "rossi", 0},
		{"real, our client, wrong", []string{real}, []string{ours, "iperf3", pkcs1}, "verdi", 1},
	} {
		out, clientOut, status := testedBy(t, append(c.server, guard...), append(c.client, login...),
			"IPERF3_PASSWORD="+c.password)
		if status != c.status || c.status == 1 && !strings.Contains(clientOut, "authorization failed") {
			t.Errorf("%s: status %d\n%s\n%s", c.name, status, out, clientOut)
		}
	}
}

// TestIperf3ServerOptions tests a server in the background with its PID file and log, one without any client, and
// iperf3's errors for options that do not fit.
func TestIperf3ServerOptions(t *testing.T) {
	t.Parallel()
	ours := harness.Program(t)
	theirs := testenv.Program(t, testenv.Iperf3)
	dir := t.TempDir()
	alias, pid, log := filepath.Join(dir, "iperf3"), filepath.Join(dir, "pid"), filepath.Join(dir, "log")
	if err := os.Symlink(ours, alias); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, int) {
		cmd := exec.CommandContext(t.Context(), alias, args...)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	port := harness.FreePort(t)
	if out, status := run("-s", "-D", "-1", "-p", port, "-B", "127.0.0.1", "-I", pid, "--logfile", log,
		"--timestamps=%s "); status != 0 || out != "" {
		t.Fatalf("status %d: %s", status, out)
	}
	number, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	if out, status := run("-s", "-D", "-p", port, "-B", "127.0.0.1"); status != 1 || !strings.Contains(out, port) {
		t.Errorf("a second one at its port: status %d: %s", status, out)
	}
	if out, err := exec.CommandContext(t.Context(), theirs, "-c", "127.0.0.1", "-p", port, "-n",
		"100K").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat("/proc/" + string(number)); err != nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("-1 did not end the server")
		}
	}
	marked := regexp.MustCompile(`(?m)^\d{10} Accepted connection from`)
	if text, err := os.ReadFile(log); err != nil || !marked.Match(text) || !strings.Contains(string(text), "receiver") {
		t.Errorf("%v: %s", err, text)
	}
	if _, err := os.Stat(pid); err == nil {
		t.Error("the process's number was left")
	}
	if out, status := run("-s", "-1", "--idle-timeout", "1", "-p", port); status != 0 {
		t.Errorf("nobody came: status %d: %s", status, out)
	}
	for _, c := range []struct{ args, want string }{
		{"-s -t 5", "client only"}, {"-c 127.0.0.1 -1", "server only"}, {"-s -c 127.0.0.1", "both server and client"},
		{"-c 127.0.0.1 --sctp", "SCTP"}, {"-c 127.0.0.1 -F /etc/hosts", "files are not sent"},
		{"-s -A 0", "CPU affinity is not set"}, {"", "-c HOST, or -s"}, {"-c 127.0.0.1 --dscp none", "class"},
		{"-s --rsa-private-key-path " + log, "--authorized-users-path"},
		{"-s --server-bitrate-limit 10M/x", "invalid time interval"}, {"-c 127.0.0.1 -p 0", "between 1 and 65535"},
		{"-c 127.0.0.1 -p 99999", "between 1 and 65535"}, {"-c 127.0.0.1 -t 100000", "test duration too long"},
		{"-c 127.0.0.1 -P 129", "number of parallel streams"}, {"-c 127.0.0.1 -i 61", "invalid report interval"},
		{"-c 127.0.0.1 -l 2M", "block size too large"}, {"-c 127.0.0.1 -u -l 5", "block size invalid"},
		{"-c 127.0.0.1 -w 1G", "socket buffer size too large"}, {"-c 127.0.0.1 -f x", "bad format specifier"},
		{"-c 127.0.0.1 -S 256", "bad TOS value"}, {"-c 127.0.0.1 -n 1M -k 2", "only one test end condition"},
		{"-c 127.0.0.1 -R --bidir", "both reverse and bidirectional"},
		{"-c 127.0.0.1 --rcv-timeout 500", "valid only in receiving mode"}, {"-s -B 127.0.0.1%lo", "not at an interface"},
		{"-c 127.0.0.1%lo --bind-dev eth0", "two interfaces"}, {"-c 127.0.0.1 -O 1 -n 1M", "omitted time"},
	} {
		if out, status := run(strings.Fields(c.args)...); status != 1 || !strings.HasPrefix(out,
			"iperf3: parameter error - ") || !strings.Contains(out, c.want) {
			t.Errorf("iperf3 %s: status %d: %s", c.args, status, out)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"--nonsense", "unrecognized option '--nonsense'"}, {"-s -y", "invalid option -- 'y'"},
		{"-c", "option requires an argument -- 'c'"},
		{"-s --server-bitrate-limit", "option '--server-bitrate-limit' requires an argument"},
	} { // as getopt_long has them
		if out, status := run(strings.Fields(c.args)...); status != 1 || !strings.HasPrefix(out, "iperf3: "+c.want) {
			t.Errorf("iperf3 %s: status %d: %s", c.args, status, out)
		}
	}
	if out, status := run("-v"); status != 0 || !strings.HasPrefix(out, "iperf 3.") {
		t.Errorf("-v: status %d: %s", status, out)
	}
	var doc struct{ Error string }
	if out, status := run("-s", "-J", "-t", "5"); json.Unmarshal([]byte(out), &doc) != nil || doc.Error == "" ||
		status != 1 {
		t.Errorf("-J: status %d: %s", status, out)
	}
}
