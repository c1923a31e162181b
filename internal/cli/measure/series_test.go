package measure

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/history"
)

// TestSeriesKey_OptionsOfTheirOwn: an option that changes the measurement makes a series of its own, and its default
// given makes none.
func TestSeriesKey_OptionsOfTheirOwn(t *testing.T) {
	key := func(args string) string {
		cmd, f := command()
		cmd.RunE = func(_ *cobra.Command, args []string) error {
			_, err := f.habits.translate(cmd, f, args)
			return err
		}
		ctx := history.WithSession(t.Context())
		cmd.SetArgs(strings.Fields("far.example.net " + args))
		if err := cmd.ExecuteContext(ctx); err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		return history.SessionOf(ctx).Series("h", "far.example.net").Key()
	}
	seen := map[string]string{}
	for _, args := range []string{"", "--window 64K", "--dscp ef", "--no-delay", "--exchange", "--write-rate 20mbit",
		"--read-rate 20mbit", "-b 30M", "-u", "-u --datagram 1200", "-u --dscp ef", "--rr", "--crr", "--rr --concurrency 2",
		"--rr --request-size 1", "--rr --response-size 1", "--rr --rate 500", "--rr --rate 501"} {
		if other, ok := seen[key(args)]; ok {
			t.Errorf("%q and %q are one series", args, other)
		}
		seen[key(args)] = args
	}
	for args, same := range map[string]string{"--window 0 --dscp cs0 --write-rate 0 --read-rate 0 --no-delay=false": "",
		"-u --datagram 1448": "-u", "-b 20M": "--write-rate 20mbit", "-N": "--no-delay",
		"--rr --response-size 1000B --concurrency 1": "--rr"} {
		if seen[key(args)] != same {
			t.Errorf("%q is the series of %q, want %q", args, seen[key(args)], same)
		}
	}
}
