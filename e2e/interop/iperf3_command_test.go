//go:build linux

package interop

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	face "github.com/fullpipe-net/fullpipe/internal/render/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// keysOf lists every key of a JSON value with its type; a list is its first element.
func keysOf(prefix string, v any, into map[string]string) {
	switch v := v.(type) {
	case map[string]any:
		into[prefix] = "object"
		for key, value := range v {
			keysOf(prefix+"."+key, value, into)
		}
	case []any:
		into[prefix] = "list"
		if len(v) > 0 {
			keysOf(prefix+"[]", v[0], into)
		}
	case string:
		into[prefix] = "string"
	case bool:
		into[prefix] = "bool"
	case float64:
		into[prefix] = "number"
	}
}

// objectOf runs a client and returns its JSON.
func objectOf(t *testing.T, program string, args ...string) map[string]any {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).Output()
	var doc map[string]any
	if decoded := json.Unmarshal(out, &doc); decoded != nil {
		t.Fatalf("%s %v: %v, %v\n%s", program, args, err, decoded, out)
	}
	return doc
}

// TestIperf3CommandKeyByKey compares `fullpipe iperf3 --json` with iperf3's own output for the same test with the
// same server: every key, with its type.
func TestIperf3CommandKeyByKey(t *testing.T) {
	t.Parallel()
	ours := harness.Program(t)
	real := testenv.Program(t, testenv.Iperf3)
	for _, options := range []string{"", "-P 2 -b 10M", "-R -b 20M", "-R -P 3 -w 128K -b 10M", "-n 2M",
		"-O 1 -i 0.5 -b 20M", "-u -b 5M", "-u -b 5M -R", "-u -b 5M -P 2", "-u -b 5M -P 2 -R", "-u -b 5M --bidir",
		"-u -b 5M -O 1", "-l 4K -N -M 1000 -b 20M", "-b 20M", "--bidir -b 20M", "--bidir -P 2 -b 10M",
		"-T title --extra-data more -b 20M", "--get-server-output -b 20M"} {
		t.Run(options, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"iperf3", "-c", "127.0.0.1", "-p", harness.StartIperf3(t), "-J"}, strings.Fields(options)...)
			if !strings.Contains(options, "-n") {
				args = append(args, "-t", "1")
			}
			theirs, mine := map[string]string{}, map[string]string{}
			keysOf("", objectOf(t, real, args[1:]...), theirs)
			doc := objectOf(t, ours, args...)
			keysOf("", doc, mine)
			sameKeys(t, theirs, mine)
			if _, has := doc["fullpipe"]; !has {
				t.Error("nothing about what limited it")
			}
		})
	}
}

// sameKeys compares our keys and their types with iperf3's. It allows only the additional keys of later versions and
// our own.
func sameKeys(t *testing.T, theirs, mine map[string]string) {
	t.Helper()
	for key, kind := range theirs {
		if mine[key] != kind {
			t.Errorf("%s is %s there, %q here", key, kind, mine[key])
		}
	}
	for key := range mine {
		if theirs[key] == "" && face.LaterKeys[key] == "" && !strings.HasPrefix(key, ".fullpipe") {
			t.Errorf("%s is not there", key)
		}
	}
}

// TestIperf3CommandFails compares errors with iperf3's texts.
func TestIperf3CommandFails(t *testing.T) {
	t.Parallel()
	ours := harness.Program(t)
	doc := objectOf(t, ours, "iperf3", "-c", "127.0.0.1", "-p", "1", "-J")
	if doc["error"] != "unable to connect to server: Connection refused" {
		t.Errorf("%v", doc["error"])
	}
	for _, key := range []string{"start", "intervals", "end"} {
		if _, has := doc[key]; !has {
			t.Errorf("no %s with an error", key)
		}
	}
	cmd := exec.CommandContext(t.Context(), ours, "iperf3", "-c", "127.0.0.1", "-p", "1")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if cmd.Run(); cmd.ProcessState.ExitCode() != 1 || errs.String() != "iperf3: error - unable to connect to server: "+
		"Connection refused\n" {
		t.Errorf("status %d: %q", cmd.ProcessState.ExitCode(), errs.String())
	}
}

// saidOnce drops lines that repeat the line before: the number of intervals on a busy machine does not belong to the
// shape.
func saidOnce(lines []string) []string {
	for n := 1; n <= len(lines)/2; n++ {
		for i := 0; i+2*n <= len(lines); {
			if !slices.Equal(lines[i:i+n], lines[i+n:i+2*n]) {
				i++
				continue
			}
			lines, n = slices.Delete(lines, i, i+n), 1
			i = 0
		}
	}
	return lines
}

// TestIperf3CommandText checks the text that scripts look for, line by line the shape of iperf3's own.
func TestIperf3CommandText(t *testing.T) {
	t.Parallel()
	ours := harness.Program(t)
	real := testenv.Program(t, testenv.Iperf3)
	alias := filepath.Join(t.TempDir(), "iperf3") // called by that name, this program is iperf3
	if err := os.Symlink(ours, alias); err != nil {
		t.Fatal(err)
	}
	shape := func(t *testing.T, program, port, options string) []string {
		out, err := exec.CommandContext(t.Context(), program, append([]string{"-c", "127.0.0.1", "-p", port, "-t", "1"},
			strings.Fields(options)...)...).Output()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", program, options, err, out)
		}
		return saidOnce(harness.Iperf3Shape(string(out)))
	}
	for _, options := range []string{"", "-P 2 -i 0.5 -b 10M", "-R -b 20M", "-u -b 1M", "-u -b 1M -R", "-u -b 1M -P 2",
		"--bidir -b 20M", "--bidir -P 2 -b 10M", "-u -b 1M --bidir", "-f m -O 1 -b 20M"} {
		t.Run(options, func(t *testing.T) {
			t.Parallel()
			port := harness.StartIperf3(t)
			if theirs, mine := shape(t, real, port, options), shape(t, alias, port, options); !slices.Equal(theirs, mine) {
				t.Errorf("there\n%s\nhere\n%s", strings.Join(theirs, "\n"), strings.Join(mine, "\n"))
			}
		})
	}
}

// TestIperf3CommandLogsIn logs in to a real server that requires a user.
func TestIperf3CommandLogsIn(t *testing.T) {
	t.Parallel()
	ours := harness.Program(t)
	testenv.Need(t, testenv.Iperf3)
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	publicFile := file("public.pem", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))
	port := harness.StartIperf3(t, "--rsa-private-key-path", file("private.pem", pem.EncodeToMemory(&pem.Block{
		Type: "PRIVATE KEY", Bytes: private})),
		"--authorized-users-path", file("users", fmt.Appendf(nil, "mario,%x\n", sha256.Sum256([]byte("{mario}rossi")))))
	for password, status := range map[string]int{"rossi": 0, "verdi": 1} {
		// Servers before 3.17, as Debian's 3.12, take PKCS#1 v1.5.
		cmd := exec.CommandContext(t.Context(), ours, "iperf3", "-c", "127.0.0.1", "-p", port, "-t", "1", "--username",
			"mario",
			"--rsa-public-key-path", publicFile, "--use-pkcs1-padding")
		cmd.Env = append(os.Environ(), "IPERF3_PASSWORD="+password)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != status {
			t.Errorf("password %q: status %d\n%s", password, got, out)
		}
	}
}

// TestIperf3CommandPortsAndBursts requests ports of its own and bursts, with a real server: each stream has the next
// port, and the requested bytes are moved.
func TestIperf3CommandPortsAndBursts(t *testing.T) {
	t.Parallel()
	ours := harness.Program(t)
	testenv.Need(t, testenv.Iperf3)
	port := harness.StartIperf3(t)
	for _, tt := range []struct {
		options string
		streams int
	}{{"-n 1M", 1}, {"-P 3 -n 1M -R", 3}, {"--bidir -P 2 -n 200K", 4}, {"-u -n 100K -P 2 -b 20M/7 -l 1000", 2},
		{"-n 1M -l 16K -b 100M/4", 1}} {
		first := testenv.FreePort(t, tt.streams)
		args := append([]string{"iperf3", "-c", "127.0.0.1", "-p", port, "-J", "--cport", strconv.Itoa(first)},
			strings.Fields(tt.options)...)
		out, err := exec.CommandContext(t.Context(), ours, args...).Output()
		var doc face.Document
		if uerr := json.Unmarshal(out, &doc); err != nil || uerr != nil || doc.Error != "" {
			t.Fatalf("%s: %v, %v: %s", tt.options, err, uerr, out)
		}
		var ports []int
		for _, c := range doc.Start.Connected {
			ports = append(ports, c.LocalPort)
		}
		if len(ports) != tt.streams || ports[0] != first || ports[len(ports)-1] != first+tt.streams-1 {
			t.Errorf("%s: streams from the ports %v, the first was to be %d", tt.options, ports, first)
		}
		if sum := doc.End.Received; sum == nil || sum.Bytes == 0 {
			t.Errorf("%s: nothing moved: %s", tt.options, out)
		}
	}
	for _, line := range []string{"--cport 0", "--cport 65535 -P 2", "-b 1M/0", "-b 1M/1001", "-b 1M/x"} {
		cmd := exec.CommandContext(t.Context(), ours, append([]string{"iperf3", "-c", "127.0.0.1", "-p", port},
			strings.Fields(line)...)...)
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out),
			"parameter error") {
			t.Errorf("%s: status %d: %s", line, cmd.ProcessState.ExitCode(), out)
		}
	}
}
