package apply

import (
	"errors"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// TestCheckMemory_UnstatedOrTooSmall checks buffers larger than this host's memory in plans that state no memory, or
// too little.
func TestCheckMemory_UnstatedOrTooSmall(t *testing.T) {
	testenv.Need(t, testenv.Linux)
	maximum := "4096 16384 1125899906842624" // 1 PiB: more than any host has
	would := []host.Did{{Kind: host.Sysctl, Name: "net.ipv4.tcp_wmem", New: &maximum},
		{Kind: host.Sysctl, Name: "net.ipv4.tcp_rmem", New: &maximum}}
	for _, planned := range []int64{0, 1, -1 << 60} {
		var refused *memoryError
		if err := checkMemory(planned, would); !errors.As(err, &refused) {
			t.Errorf("a plan of %d bytes: %v", planned, err)
		}
	}
	if err := checkMemory(0, nil); err != nil {
		t.Error(err)
	}
}

func TestParsePlan_IgnoresProgramSettings(t *testing.T) {
	p, err := parsePlan([]byte(`{"schema":"fullpipe/tune/v1","directions":[{"settings":[
		{"host":"near","by":"host","name":"net.ipv4.tcp_wmem","value":"4096 16384 33554432"},
		{"host":"near","by":"program","name":"net.core.wmem_max","where":"sysctl","value":"20971520"},
		{"host":"near","by":"streams","name":"connections at once","where":"several","value":"4"}]}]}`), "tune.json", false)
	if err != nil || len(p.Settings) != 1 || p.Settings[0].Name != "net.ipv4.tcp_wmem" {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestParsePlan_LikelyGains checks that a gain that is not proven is applied on demand only.
func TestParsePlan_LikelyGains(t *testing.T) {
	direction := func(strength, name string) string {
		return `{"decision":{"strength":"` + strength + `"},"settings":[{"host":"near","by":"host","name":"` + name +
			`","value":"x"}]}`
	}
	for _, c := range []struct {
		directions string
		likely     bool
		settings   int // 0: refused
	}{
		{direction("shown", "a"), false, 1}, {direction("likely", "a"), false, 0}, {direction("likely", "a"), true, 1},
		{direction("shown", "a") + "," + direction("likely", "b"), false, 1},
		{direction("shown", "a") + "," + direction("likely", "b"), true, 2},
	} {
		p, err := parsePlan([]byte(`{"schema":"fullpipe/tune/v1","directions":[`+c.directions+`]}`), "-", c.likely)
		if (err != nil) != (c.settings == 0) || err == nil && len(p.Settings) != c.settings {
			t.Errorf("%s, %v: %+v, %v", c.directions, c.likely, p, err)
		}
	}
}
