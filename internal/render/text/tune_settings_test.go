package text

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestTuneSettings_MarkAlternatives(t *testing.T) {
	buffer := 20971520
	one := func(of advice.Action, by record.SettingBy, name, value string) record.TuneSetting {
		return record.TuneSetting{Host: "near", Target: "linux-6.18", Of: of, By: by,
			Setting: plan.Setting{Name: name, Value: value}}
	}
	for _, tt := range []struct {
		name     string
		buffer   int
		settings []record.TuneSetting
		want     []string
	}{
		{"window by the host, a program or streams", buffer, []record.TuneSetting{
			one(advice.LargerWindows, record.ByHost, "net.ipv4.tcp_wmem", "4096 16384 33554432"),
			one(advice.LargerWindows, record.ByProgram, "net.core.wmem_max", "20971520"),
			one(advice.LargerWindows, record.ByStreams, "connections at once", "4")},
			[]string{"net.ipv4.tcp_wmem = 4096 16384 33554432", "or SO_SNDBUF = 20971520",
				"  with net.core.wmem_max = 20971520", "or connections at once = 4"}},
		{"old Windows: scaling is needed in any case", buffer, []record.TuneSetting{
			one(advice.WindowScaling, record.ByHost, "Tcp1323Opts", "1"),
			one(advice.LargerWindows, record.ByHost, "TcpWindowSize", "20971520"),
			one(advice.LargerWindows, record.ByHost, "GlobalMaxTcpWindowSize", "20971520")},
			[]string{"Tcp1323Opts = 1", "TcpWindowSize = 20971520", "GlobalMaxTcpWindowSize = 20971520",
				"or SO_SNDBUF = 20971520"}},
		{"window and congestion control", buffer, []record.TuneSetting{
			one(advice.LargerWindows, record.ByHost, "net.ipv4.tcp_wmem", "4096 16384 33554432"),
			one(advice.OtherControl, record.ByProgram, "TCP_CONGESTION", "bbr"),
			one(advice.OtherControl, record.ByRoute, "congctl", "bbr")},
			[]string{"net.ipv4.tcp_wmem = 4096 16384 33554432", "or SO_SNDBUF = 20971520", "TCP_CONGESTION = bbr",
				"or congctl = bbr"}},
		{"a document without alternatives", buffer, []record.TuneSetting{
			one("", "", "net.ipv4.tcp_wmem", "4096 16384 33554432")},
			[]string{"net.ipv4.tcp_wmem = 4096 16384 33554432", "SO_SNDBUF = 20971520"}},
	} {
		d := &record.TuneDirection{Direction: transfer.Up, Settings: tt.settings,
			Chosen: &record.TuneChosen{SendBufferBytes: tt.buffer}}
		var got []string
		for _, s := range tuneSettings(d) {
			for _, row := range s.table.rows {
				got = append(got, row[0])
			}
		}
		if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
