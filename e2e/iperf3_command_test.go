//go:build linux

package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	face "github.com/fullpipe-net/fullpipe/internal/render/iperf3"
)

// realPort is realServer's port.
func realPort(t *testing.T, args ...string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(realServer(t, args...))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

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

// objectOf runs a client and answers its JSON.
func objectOf(t *testing.T, program string, args ...string) map[string]any {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).Output()
	var doc map[string]any
	if decoded := json.Unmarshal(out, &doc); decoded != nil {
		t.Fatalf("%s %v: %v, %v\n%s", program, args, err, decoded, out)
	}
	return doc
}

// TestIperf3CommandKeyByKey holds `fullpipe iperf3 --json` against what iperf3 itself
// prints of the same test with the same server: every key, with its type.
func TestIperf3CommandKeyByKey(t *testing.T) {
	ours, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	real, port := needIperf3(t), realPort(t)
	for _, options := range []string{"", "-P 2", "-R", "-R -P 3 -w 128K", "-n 2M", "-O 1 -i 0.5", "-u -b 5M",
		"-u -b 5M -R", "-u -b 5M -P 2", "-u -b 5M -P 2 -R", "-u -b 5M --bidir", "-u -b 5M -O 1", "-l 4K -N -M 1000",
		"-b 20M", "--bidir", "--bidir -P 2", "-T title --extra-data more", "--get-server-output"} {
		args := append([]string{"iperf3", "-c", "127.0.0.1", "-p", port, "-J"}, strings.Fields(options)...)
		if !strings.Contains(options, "-n") {
			args = append(args, "-t", "1")
		}
		theirs, mine := map[string]string{}, map[string]string{}
		keysOf("", objectOf(t, real, args[1:]...), theirs)
		doc := objectOf(t, ours, args...)
		keysOf("", doc, mine)
		for key, kind := range theirs {
			if mine[key] != kind {
				t.Errorf("%q: %s is %s there, %q here", options, key, kind, mine[key])
			}
		}
		for key := range mine {
			if theirs[key] == "" && face.Later[key] == "" && !strings.HasPrefix(key, ".fullpipe") {
				t.Errorf("%q: %s is not there", options, key)
			}
		}
		if _, has := doc["fullpipe"]; !has {
			t.Errorf("%q: nothing about what limited it", options)
		}
	}
}

// TestIperf3CommandFails holds errors to iperf3's words.
func TestIperf3CommandFails(t *testing.T) {
	ours, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
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

var (
	anyNumber = regexp.MustCompile(`\d+(\.\d+)?`)
	anyUnit   = regexp.MustCompile(`[KMGT]?(bits|Bytes)`)
)

// shapeOf is a text line by line without its figures and their units.
func shapeOf(text string) (lines []string) {
	for line := range strings.Lines(text) {
		line = anyUnit.ReplaceAllString(anyNumber.ReplaceAllString(line, "0"), "U")
		line = strings.Join(strings.Fields(line), " ")
		if strings.HasPrefix(line, "[ ID]") { // 3.12 heads a receiver's columns now one way, now the other
			line = strings.TrimSuffix(line, " Retr Cwnd")
		}
		lines = append(lines, line)
	}
	return lines
}

// TestIperf3CommandText holds the text to what scripts look for, line by line the shape of
// iperf3's own.
func TestIperf3CommandText(t *testing.T) {
	ours, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	real, port := needIperf3(t), realPort(t)
	alias := filepath.Join(t.TempDir(), "iperf3") // called by that name, this program is iperf3
	if err := os.Symlink(ours, alias); err != nil {
		t.Fatal(err)
	}
	shape := func(program, options string) []string {
		out, err := exec.CommandContext(t.Context(), program, append([]string{"-c", "127.0.0.1", "-p", port, "-t", "1"},
			strings.Fields(options)...)...).Output()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", program, options, err, out)
		}
		return shapeOf(string(out))
	}
	for _, options := range []string{"", "-P 2 -i 0.5", "-R", "-u -b 1M", "-u -b 1M -R", "-u -b 1M -P 2",
		"--bidir", "--bidir -P 2", "-u -b 1M --bidir", "-f m -O 1"} {
		if theirs, mine := shape(real, options), shape(alias, options); !slices.Equal(slices.Compact(theirs),
			slices.Compact(mine)) {
			t.Errorf("%q: there\n%s\nhere\n%s", options, strings.Join(theirs, "\n"), strings.Join(mine, "\n"))
		}
	}
}

// TestIperf3CommandLogsIn shows itself to a real server that wants a user.
func TestIperf3CommandLogsIn(t *testing.T) {
	ours, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	needIperf3(t)
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
	port := realPort(t, "--rsa-private-key-path", file("private.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY",
		Bytes: private})),
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
