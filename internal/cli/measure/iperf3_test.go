package measure

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// asked parses a command line of measure as far as its specs.
func asked(t *testing.T, args ...string) (peers []string, f flags, err error) {
	t.Helper()
	cmd, made := command()
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		peers, err = made.habits.translate(cmd, made, args)
		return err
	}
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err = cmd.Execute()
	return peers, *made, err
}

func TestIperf3Habits(t *testing.T) {
	for _, tt := range []struct {
		args  string
		peers []string
		check func(f *flags) bool
	}{
		{"host -t 3", []string{"host"}, func(f *flags) bool { return f.time == 3*time.Second }},
		{"host -t 1.5 -i 0.5", []string{"host"}, func(f *flags) bool {
			return f.time == 1500*time.Millisecond && f.interval == cmdflag.Duration(500*time.Millisecond)
		}},
		{"-c host -p 5202", []string{"host:5202"}, func(f *flags) bool { return f.Direction == "up" }},
		{"iperf3://host -p 5202 -R", []string{"iperf3://host:5202"},
			func(f *flags) bool { return f.Direction == "down" }},
		{"2001:db8::1 -p 99", []string{"[2001:db8::1]:99"}, func(f *flags) bool { return true }},
		{"[2001:db8::1] -p 99", []string{"[2001:db8::1]:99"}, func(f *flags) bool { return true }},
		{"host:99 -p 99", []string{"host:99"}, func(f *flags) bool { return true }},
		{"host -w 64K", []string{"host"}, func(f *flags) bool { return f.send == 65536 && f.receive == 65536 }},
		{"host -b 1M -P 4", []string{"host"}, func(f *flags) bool { return f.writeRate == 1e6 && f.parallel == 4 }},
		{"host -u -b 1M -P 4 -l 500", []string{"host"}, func(f *flags) bool {
			return f.udp.rate == 4e6 &&
				f.udp.datagram == 500
		}},
		{"host -u -b 0", []string{"host"}, func(f *flags) bool { return f.udp.rate == 0 }},
		{"host -l 8K -N -M 1200 -C reno", []string{"host"}, func(f *flags) bool {
			return f.write == 8192 && f.noDelay && f.mss == 1200 && f.congestion == "reno"
		}},
		{"host --dscp ef", []string{"host"}, func(f *flags) bool { return f.dscp == 46 }},
		{"host --dscp 0x2e", []string{"host"}, func(f *flags) bool { return f.dscp == 46 }},
		{"host -n 1M", []string{"host"}, func(f *flags) bool { return f.bytes == 1<<20 }},
	} {
		peers, f, err := asked(t, strings.Fields(tt.args)...)
		if err != nil || !reflect.DeepEqual(peers, tt.peers) || !tt.check(&f) {
			t.Errorf("%s: %q, %+v, %v", tt.args, peers, f, err)
		}
	}
	for args, want := range map[string]string{
		"host -R -d up": "-R", "host -R --bidir": "-R", "host -c other": "-c", "host -w 64K --send-buffer 1M": "-w",
		"host -u -w 64K": "-w",
		"host -b 10M/8":  "-b", "host -b fast": "-b", "host -b 1M --write-rate 1M": "-b", "host -l 8K --write-size 8K": "-l",
		"host:1 -p 2":          "-p",
		"lab:wan-12ms -p 5201": "-p", "https://host/x -p 1": "-p", "host -p 0": "-p",
	} {
		_, _, err := asked(t, strings.Fields(args)...)
		var usage *exit.UsageError
		if !errors.As(err, &usage) || usage.Argument != want || usage.Try == "" {
			t.Errorf("%s: %v, want a word about %s", args, err, want)
		}
	}
	for flag, ours := range map[string]string{"-O": "steady_goodput_bps", "-s": "fullpipe serve", "-Z": "no copy",
		"--omit": "steady_goodput_bps", "-k": "--bytes", "-S": "--dscp", "-T": "--label",
		"--affinity": "taskset", "--bind-dev": "--bind"} {
		_, _, err := asked(t, "host", flag, "3")
		var usage *exit.UsageError
		if !errors.As(err, &usage) || !strings.Contains(usage.Try, ours) || usage.Argument != flag ||
			usage.Message != "is iperf3's" {
			t.Errorf("%s: %v", flag, err)
		}
	}
	for args, want := range map[string]string{"--nonsense": "--nonsense: no such option", "-y": "-y: no such option",
		"--time": "--time: needs a value", "-t": "-t: needs a value"} {
		if _, _, err := asked(t, "host", args); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

// A refusal of the far end names the option, never the field.
func TestRefusedOptions(t *testing.T) {
	for field, want := range map[string]string{"Streams": "--parallel: cannot be had: 128 at most",
		"Far.Congestion": "--congestion: cannot be had: 128 at most", "Far": "PEER: does not do that: 128 at most"} {
		if got := cannotHave(&transfer.Unsupported{Field: field, Reason: "128 at most"}, "fewer").Error(); got != want {
			t.Errorf("%s: %s", field, got)
		}
	}
}

func TestCriteria(t *testing.T) {
	rate := 93e6
	for _, tt := range []struct {
		flags   criteriaFlags
		goodput *float64
		verdict verdict.Verdict
		passed  []bool
	}{
		{criteriaFlags{below: 90e6}, &rate, verdict.Verdict{}, []bool{true}},
		{criteriaFlags{below: 94e6}, &rate, verdict.Verdict{}, []bool{false}},
		{criteriaFlags{below: 1}, nil, verdict.Verdict{}, []bool{false}},
		{criteriaFlags{on: []string{"congestion/policer", "cpu"}}, &rate, verdict.Verdict{Limiter: verdict.Congestion},
			[]bool{true}},
		{criteriaFlags{on: []string{"congestion/policer"}}, &rate, verdict.Verdict{Limiter: verdict.Congestion,
			Subtype: verdict.Policer}, []bool{false}},
		{criteriaFlags{on: []string{"congestion"}}, &rate, verdict.Verdict{Limiter: verdict.Congestion,
			Subtype: verdict.Policer}, []bool{false}},
		{criteriaFlags{below: 1, on: []string{"unknown"}}, &rate, verdict.Verdict{Limiter: verdict.Unknown},
			[]bool{true, false}},
		{criteriaFlags{}, &rate, verdict.Verdict{}, nil},
	} {
		var passed []bool
		for _, c := range tt.flags.judge(transfer.Up, tt.goodput, tt.verdict, losses{}) {
			passed = append(passed, c.Passed)
		}
		if !reflect.DeepEqual(passed, tt.passed) {
			t.Errorf("%+v of %+v: %v", tt.flags, tt.verdict, passed)
		}
	}
	for _, bad := range []string{"congested", "congestion/police", ""} {
		if err := (&criteriaFlags{on: []string{bad}}).check(); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
