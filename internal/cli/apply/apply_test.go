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
		{"host":"near","by":"streams","name":"connections at once","where":"several","value":"4"}]}]}`), "tune.json")
	if err != nil || len(p.Settings) != 1 || p.Settings[0].Name != "net.ipv4.tcp_wmem" {
		t.Errorf("%+v, %v", p, err)
	}
}
