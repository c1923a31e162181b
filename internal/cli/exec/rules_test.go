package exec

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/sockops"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestExecRules(t *testing.T) {
	f := flags{all: socketFlags{send: "16MiB", receive: "auto", congestion: "bbr"},
		rules: []string{"10.0.0.0/8,receive-buffer=4MiB,pacing=100mbit", "2001:db8::1,mss=1200,window=64KiB"}}
	got, err := f.parse()
	want := []sockops.Rule{
		{Socket: transfer.Socket{SendBuffer: 16 << 20, Congestion: "bbr"}},
		{To: netip.MustParsePrefix("10.0.0.0/8"), Socket: transfer.Socket{ReceiveBuffer: 4 << 20, PacingBps: 100e6}},
		{To: netip.MustParsePrefix("2001:db8::1/128"), Socket: transfer.Socket{MSS: 1200, Clamp: 64 << 10}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, message := range map[string]string{
		"host,mss=1":               "neither an address nor a prefix",
		"10.0.0.1":                 "sets nothing",
		"10.0.0.1,buffer=1":        "KEY=VALUE",
		"10.0.0.1,mss":             "KEY=VALUE",
		"10.0.0.1,send-buffer=2x":  "unknown unit",
		"10.0.0.1,send-buffer=0":   "not between",
		"10.0.0.1,send-buffer=2GB": "not between",
		"10.0.0.1,pacing=fast":     "not a number",
	} {
		f := flags{rules: []string{text}}
		var usage *exit.UsageError
		if _, err := f.parse(); !errors.As(err, &usage) || !strings.Contains(err.Error(), message) || usage.Try == "" {
			t.Errorf("--rule %s: %v, want %q and a remedy", text, err, message)
		}
	}
	for want, f := range map[string]flags{
		"--pacing":                 {all: socketFlags{pacing: "40gbit"}},
		"--congestion":             {all: socketFlags{congestion: "longer-than-any-name"}},
		"--rule 10.0.0.0/8,pacing": {rules: []string{"10.0.0.0/8,pacing=40gbit"}},
		"--rule ::/0":              {all: socketFlags{mss: "1200"}, rules: []string{"::/0,mss=1300"}},
	} {
		_, err := f.parse()
		if usage, is := errors.AsType[*exit.UsageError](err); !is || usage.Argument != want || usage.Try == "" {
			t.Errorf("%v, want it to name %s", err, want)
		}
	}
}
