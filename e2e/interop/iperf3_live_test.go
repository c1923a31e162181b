//go:build linux

package interop

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// followLines starts a program and returns the lines of its output, through a pipe.
func followLines(t *testing.T, program string, args ...string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	return cmd, lines
}

// until reads lines up to one that contains a text.
func until(t *testing.T, lines *bufio.Scanner, text string) (read []string) {
	t.Helper()
	for lines.Scan() {
		if read = append(read, lines.Text()); strings.Contains(lines.Text(), text) {
			return read
		}
	}
	t.Fatalf("no %q in\n%s", text, strings.Join(read, "\n"))
	return nil
}

// TestIperf3IntervalsPassLive checks that a test of an hour has printed its first two intervals to a pipe when it is
// stopped, as text and as JSON, TCP and UDP, client and server.
func TestIperf3IntervalsPassLive(t *testing.T) {
	t.Parallel()
	ours := harness.Program(t)
	for _, options := range []string{"-b 5M", "-R -b 5M -P 2", "--bidir -b 5M", "-u -b 1M -l 1000",
		"-u -b 1M -R -l 1000"} {
		for _, stream := range []bool{false, true} {
			args := append([]string{"iperf3", "-c", "127.0.0.1", "-p", harness.StartIperf3(t), "-t", "3600", "-i", "0.2"},
				strings.Fields(options)...)
			interval := " sec " // when it begins and ends is the machine's affair
			if stream {
				args, interval = append(args, "--json-stream"), `{"event":"interval"`
			}
			cmd, lines := followLines(t, ours, args...)
			if stream {
				if first := until(t, lines, `"event"`)[0]; !strings.HasPrefix(first, `{"event":"start","data":{`) {
					t.Errorf("%s: begins with %s", options, first)
				}
			}
			until(t, lines, interval)
			until(t, lines, interval)
			cmd.Process.Signal(syscall.SIGINT)
			rest, _ := io.ReadAll(&scanned{lines})
			cmd.Wait()
			if cmd.ProcessState.ExitCode() != 1 || stream && !strings.Contains(string(rest), `{"event":"end","data":`) {
				t.Errorf("%s: status %d, ends with %s", options, cmd.ProcessState.ExitCode(), rest)
			}
		}
	}

	free := harness.FreePort(t)
	_, lines := followLines(t, ours, "iperf3", "-s", "-1", "-i", "0.2", "-p", free)
	harness.AwaitListener(t, free)
	client := exec.CommandContext(t.Context(), testenv.Program(t, testenv.Iperf3), "-c", "127.0.0.1", "-p", free,
		"-t", "3600", "-b",
		"5M")
	if err := client.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, lines, " sec ")
	until(t, lines, " sec ")
	client.Process.Signal(syscall.SIGINT)
	client.Wait()
	until(t, lines, "Interval") // the summary at the end
}

// scanned reads the remaining lines of a Scanner.
type scanned struct{ lines *bufio.Scanner }

func (s *scanned) Read(p []byte) (int, error) {
	if !s.lines.Scan() {
		return 0, io.EOF
	}
	return copy(p, s.lines.Text()+"\n"), nil
}

// TestIperf3WholeWrites: as many datagrams and bytes as iperf3 sends where -n and -k are no
// multiple of -l, also where the server sends them. An iperf3 server sends datagrams until the client ends the test, so
// their rate is low there: the next one would follow after 116 ms.
func TestIperf3WholeWrites(t *testing.T) {
	t.Parallel()
	ours := harness.Program(t)
	real, port := testenv.Program(t, testenv.Iperf3), harness.StartIperf3(t)
	for _, c := range []struct {
		options string
		within  int64 // datagrams: streams with a rate have a timer each, and the order of the timers decides the last round
	}{{"-u -n 10000 -l 1448", 0}, {"-u -n 1000 -l 1448 -P 2", 1}, {"-u -n 10000 -l 1000 -P 3", 2},
		{"-u -k 7 -l 1000 -P 2", 1}, {"-u -n 10000 -l 1448 -b 100k -R", 0}, {"-n 1", 0}, {"-n 100K -P 3", 0},
		{"-k 5 -P 2", 0}, {"-k 5 -R", 0}, {"-n 100K", 0}} {
		options := c.options
		moved := func(program ...string) (bytes, packets int64) {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			args := append(slices.Clone(program[1:]), "-c", "127.0.0.1", "-p", port, "-J")
			out, err := exec.CommandContext(ctx, program[0], append(args, strings.Fields(options)...)...).Output()
			var doc struct {
				End struct {
					Sent harness.Iperf3Sum `json:"sum_sent"`
					Sum  struct{ Packets int64 }
				}
			}
			if json.Unmarshal(out, &doc) != nil || err != nil {
				t.Fatalf("%v %s: %v\n%s", program, options, err, out)
			}
			return doc.End.Sent.Bytes, doc.End.Sum.Packets
		}
		bytes, packets := moved(real)
		b, p := moved(ours, "iperf3")
		if more := max(p, packets) - min(p, packets); more > c.within || b*packets != bytes*p || more == 0 && b != bytes {
			t.Errorf("%s: %d bytes in %d datagrams, iperf3 %d in %d", options, b, p, bytes, packets)
		}
	}
}

// TestIperf3ServerBitrateLimit checks that a request above the limit is refused, and that a test without a rate is
// ended when its average is above the limit, as by iperf3's own server.
func TestIperf3ServerBitrateLimit(t *testing.T) {
	t.Parallel()
	ours := harness.Program(t)
	real := testenv.Program(t, testenv.Iperf3)
	const words = "total required bandwidth is larger than server limit"
	for _, c := range []struct {
		client string
		status int
	}{{"-b 2M -t 1", 1}, {"-b 600K -P 2 -t 1", 1}, {"-b 400K -P 2 -l 1000 -t 2", 0}, {"-t 30 -i 0 --fq-rate 20M -l 8K", 1},
		{"-t 30 -R -i 0 -u -b 0 -l 1000", 1}} {
		out, clientOut, status := testedBy(t, []string{ours, "iperf3", "-s", "-1", "--server-bitrate-limit", "1M/1"},
			append([]string{real}, strings.Fields(c.client)...))
		if status != c.status || strings.Contains(out, "iperf3: error - "+words) != (c.status == 1) {
			t.Errorf("%s: status %d\n%s\n%s", c.client, status, out, clientOut)
		}
	}
}

// TestIperf3SaysMore compares the output of -V with iperf3's lines, and --get-server-output with the server's own
// text.
func TestIperf3SaysMore(t *testing.T) {
	t.Parallel()
	ours := harness.Program(t)
	real, port := testenv.Program(t, testenv.Iperf3), harness.StartIperf3(t)
	shape := func(options string, program ...string) []string {
		args := append(slices.Clone(program[1:]), "-c", "127.0.0.1", "-p", port)
		out, err := exec.CommandContext(t.Context(), program[0], append(args, strings.Fields(options)...)...).Output()
		if err != nil {
			t.Fatalf("%v %s: %v\n%s", program, options, err, out)
		}
		lines := harness.Iperf3Shape(string(out))
		for i := range lines {
			if fields := strings.Fields(lines[i]); len(fields) == 2 && fields[0] == "Cookie:" {
				lines[i] = fields[0]
			} else if len(fields) > 1 && fields[0] == "Time:" {
				lines[i] = fields[0]
			}
		}
		return saidOnce(slices.DeleteFunc(lines, func(line string) bool {
			// A server of 3.12 also prints that it waits, except for the first client that asks.
			return strings.HasPrefix(line, "-----") || strings.HasPrefix(line, "Server listening")
		}))
	}
	for _, options := range []string{"-V -t 1 -b 10M", "-V -R -t 1 -b 10M -S 0x20", "-V -u -t 1", "-V -n 1M -M 1000",
		"-V -k 3 -P 2", "-V --bidir -t 1 -b 10M", "-V -u -b 1M -l 1000 -R -n 10K", "-t 1 -b 10M --get-server-output"} {
		if theirs, mine := shape(options, real), shape(options, ours, "iperf3"); !slices.Equal(theirs, mine) {
			t.Errorf("%q: there\n%s\nhere\n%s", options, strings.Join(theirs, "\n"), strings.Join(mine, "\n"))
		}
	}
	for _, c := range []struct {
		args, want string
		status     int
	}{
		{"-C nosuch", "iperf3: error - unable to set TCP_CONGESTION: " +
			"Supplied congestion control algorithm not supported on this host\n", 1},
		{"-n 100K --bind-dev lo", "", 0}, {"-n 100K -B 127.0.0.1%lo", "", 0}, {"-n 100K -R --rcv-timeout 500", "", 0},
	} {
		var errs strings.Builder
		cmd := exec.CommandContext(t.Context(), ours, append([]string{"iperf3", "-q", "-c", "127.0.0.1", "-p", port},
			strings.Fields(c.args)...)...)
		cmd.Stderr = &errs
		if cmd.Run(); cmd.ProcessState.ExitCode() != c.status || errs.String() != c.want {
			t.Errorf("%s: status %d: %s", c.args, cmd.ProcessState.ExitCode(), errs.String())
		}
	}
}
