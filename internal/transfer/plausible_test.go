package transfer

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEndValidate_AcceptsRecordedTransfers validates every recorded transfer of the repository.
func TestEndValidate_AcceptsRecordedTransfers(t *testing.T) {
	var files []string
	for _, where := range []string{"../*/testdata", "../*/*/testdata"} {
		some, _ := filepath.Glob(where + "/*_*.json.gz")
		files = append(files, some...)
	}
	checked := 0
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		var r Result
		err = json.NewDecoder(z).Decode(&r)
		f.Close()
		if err != nil || r.Near == nil && r.Far == nil {
			continue // of another kind
		}
		for _, end := range []*End{r.Near, r.Far} {
			if end == nil {
				continue
			}
			checked++
			var last time.Duration
			if end.CPU != nil {
				last = end.CPU.Wall
			}
			for _, s := range end.Streams {
				last = max(last, s.Last)
			}
			if err := end.Validate(r.Spec, last); err != nil {
				t.Errorf("%s: %v", filepath.Base(file), err)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d recorded ends were found", checked)
	}
}

// plausible returns the report of a correct far end about one second.
func plausible() *End {
	host := 0.5
	return &End{Kernel: "Linux 6.18.44", CPU: &CPU{Wall: time.Second, Process: time.Second, BusiestThread: 1, Host: &host},
		Streams: []Stream{{Congestion: "cubic", Bytes: 1e6, First: time.Millisecond, Last: time.Second,
			Handshake: &Handshake{MSS: 1448, SendScale: 14, ReceiveScale: -1, PathMTU: 1500},
			Samples: []Sample{{At: time.Millisecond, Have: HaveAcked | HaveRetrans, Sent: 2000, Retransmitted: 2,
				RTT: time.Millisecond},
				{At: time.Second, Have: HaveAcked | HaveRetrans, Sent: 1e6, SendWnd: maxWindow}}}}}
}

func oneCounter(packets, bytes int64, moves ...Move) []DropCounter {
	return []DropCounter{{Packets: packets, Bytes: bytes, Moves: moves}}
}

func lossAt(p LossPlace) *Losses { return &Losses{Places: []LossPlace{p}} }

// TestLosses_NamesNoDevice checks that devices of a host stay there.
func TestLosses_NamesNoDevice(t *testing.T) {
	losses := lossAt(LossPlace{Reason: "QDISC_DROP", Device: "eth-secret", Qdisc: "tbf-secret", Dropped: 1})
	text, err := json.Marshal(losses)
	if err != nil || strings.Contains(string(text), "secret") || !strings.Contains(string(text), "QDISC_DROP") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestDropCounter_NamesNoDevice checks that devices and rules of a host stay there.
func TestDropCounter_NamesNoDevice(t *testing.T) {
	text, err := json.Marshal(DropCounter{Name: "tbf dropped", Device: "eth-secret", Qdisc: "secret",
		Rule: "secret", Packets: 1})
	if err != nil || strings.Contains(string(text), "secret") || !strings.Contains(string(text), "tbf dropped") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestResult_AddressesChange compares both ends' addresses of two streams.
func TestResult_AddressesChange(t *testing.T) {
	stream := func(local, remote string) Stream {
		return Stream{Local: netip.MustParseAddrPort(local), Remote: netip.MustParseAddrPort(remote)}
	}
	near := &End{Streams: []Stream{stream("10.0.0.1:7", "10.0.0.2:80"), stream("10.0.0.1:8", "10.0.0.2:80")}}
	for _, tt := range []struct {
		far  *End
		want bool
	}{
		{nil, false},
		{&End{Streams: []Stream{stream("10.0.0.2:80", "10.0.0.1:8"), stream("[::ffff:10.0.0.2]:80", "10.0.0.1:7")}}, false},
		{&End{Streams: []Stream{stream("10.0.0.2:80", "10.0.0.1:8"), stream("10.0.0.2:80", "10.0.0.1:1007")}}, true},
		{&End{Streams: []Stream{stream("10.0.0.2:80", "10.0.0.1:8"), stream("192.168.0.2:80", "10.0.0.1:7")}}, true},
	} {
		if got := (&Result{Near: near, Far: tt.far}).AddressesChange(); got != tt.want {
			t.Errorf("%+v: %v", tt.far, got)
		}
	}
}

// TestEndValidate_RejectsImpossibleRates has a megabyte in several times. Bytes of one instant have no rate.
func TestEndValidate_RejectsImpossibleRates(t *testing.T) {
	for took, possible := range map[time.Duration]bool{0: true, 1: false, time.Microsecond: true} {
		e := plausible()
		e.Streams[0].Last = e.Streams[0].First + took
		if err := e.Validate(Spec{}, time.Second); (err == nil) != possible {
			t.Errorf("a megabyte in %v: %v", took, err)
		}
	}
}

// TestEndValidate_TimeoutsNotKnown has a far end whose kernel does not count timeouts.
func TestEndValidate_TimeoutsNotKnown(t *testing.T) {
	for timeouts, possible := range map[int64]bool{-2: false, -1: true, 0: true, 3: true} {
		e := plausible()
		e.Responses = &Responses{Requests: 1, Exchanges: []Exchange{{Number: 1, Retransmitted: 3, Timeouts: timeouts}}}
		if err := e.Validate(Spec{}, time.Second); (err == nil) != possible {
			t.Errorf("%d timeouts: %v", timeouts, err)
		}
	}
}

// TestEndValidate_RejectsImpossibleNumbers expects the field's name for each impossible number.
func TestEndValidate_RejectsImpossibleNumbers(t *testing.T) {
	if err := plausible().Validate(Spec{}, time.Second); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*End){
		"streams":                   func(e *End) { e.Streams = append(e.Streams, Stream{}) },
		"kernel":                    func(e *End) { e.Kernel = strings.Repeat("x", 300) },
		"streams[0].congestion":     func(e *End) { e.Streams[0].Congestion = "\x1b]0;x\a" },
		"cpu.wall_ns":               func(e *End) { e.CPU.Wall = 200000 * time.Second },
		"memory_pressure.time_ns":   func(e *End) { e.MemoryPressure = &MemoryPressure{Times: 1, Time: -1} },
		"memory_pressure.times":     func(e *End) { e.MemoryPressure = &MemoryPressure{Times: -1} },
		"losses.bytes":              func(e *End) { e.Losses = &Losses{Bytes: -1} },
		"losses.segments":           func(e *End) { e.Losses = &Losses{Segments: 1 << 60} },
		"losses.places":             func(e *End) { e.Losses = &Losses{Places: make([]LossPlace, 300)} },
		"losses.places[0].reason":   func(e *End) { e.Losses = lossAt(LossPlace{Reason: "\x1b]0;x\a"}) },
		"losses.places[0].packets":  func(e *End) { e.Losses = lossAt(LossPlace{Packets: -1}) },
		"losses.places[0].dropped":  func(e *End) { e.Losses = lossAt(LossPlace{Dropped: 1 << 60}) },
		"losses.places[0].bytes":    func(e *End) { e.Losses = lossAt(LossPlace{Bytes: 1}) },
		"losses.places[0].segments": func(e *End) { e.Losses = lossAt(LossPlace{Segments: -1}) },
		"drop_counters":             func(e *End) { e.DropCounters = make([]DropCounter, 300) },
		"drop_counters[0].name":     func(e *End) { e.DropCounters = []DropCounter{{Name: "\x1b]0;x\a"}} },
		"drop_counters[0].packets":  func(e *End) { e.DropCounters = oneCounter(-1, 0) },
		"drop_counters[0].bytes":    func(e *End) { e.DropCounters = oneCounter(1, 70000) },
		"drop_counters[0].moves[].at_ns": func(e *End) {
			e.DropCounters = oneCounter(1, 0, Move{At: math.MinInt64, Packets: 1})
		},
		"drop_counters[0].moves[].packets":          func(e *End) { e.DropCounters = oneCounter(0, 0, Move{Packets: 1}) },
		"cpu.process_ns":                            func(e *End) { e.CPU.Process = -1 },
		"cpu.busiest_thread":                        func(e *End) { e.CPU.BusiestThread = math.NaN() },
		"cpu.host":                                  func(e *End) { *e.CPU.Host = -3e10 },
		"streams[0].bytes":                          func(e *End) { e.Streams[0].Bytes = -1 },
		"streams[0].last_ns":                        func(e *End) { e.Streams[0].Last = 200000 * time.Second },
		"streams[0].first_ns":                       func(e *End) { e.Streams[0].First = 2 * time.Second },
		"streams[0].opening":                        func(e *End) { e.Streams[0].FirstReadBytes = 2e6 },
		"streams[0].send_buffer.granted":            func(e *End) { e.Streams[0].SendBuffer.Granted = 1 << 60 },
		"streams[0].handshake.mss":                  func(e *End) { e.Streams[0].Handshake.MSS = 1 << 20 },
		"streams[0].handshake.send_scale":           func(e *End) { e.Streams[0].Handshake.SendScale = 15 },
		"streams[0].samples[1].at_ns":               func(e *End) { e.Streams[0].Samples[1].At = 0 },
		"streams[0].samples[0].rtt_ns":              func(e *End) { e.Streams[0].Samples[0].RTT = -time.Second },
		"streams[0].samples[1].receive_wnd":         func(e *End) { e.Streams[0].Samples[1].ReceiveWnd = 1 << 31 },
		"streams[0].samples[1].delivery_bps":        func(e *End) { e.Streams[0].Samples[1].DeliveryBps = 1e300 },
		"streams[0].samples[0].retransmitted":       func(e *End) { e.Streams[0].Samples[0].Retransmitted = 1 << 60 },
		"streams[0].samples[1].rwnd_limited_ns":     func(e *End) { e.Streams[0].Samples[1].RwndLimited = time.Hour },
		"streams[0].samples[1].retransmitted_bytes": func(e *End) { e.Streams[0].Samples[1].RetransmittedBytes = 1 << 40 },
	} {
		end := plausible()
		change(end)
		var u *ImplausibleError
		if err := end.Validate(Spec{}, time.Second); !errors.As(err, &u) || u.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	crowded := plausible()
	crowded.Streams[0].Samples = make([]Sample, 10000)
	if crowded.Validate(Spec{}, time.Second) == nil {
		t.Error("10,000 samples are accepted")
	}
	for _, i := range []Interval{{Bytes: -1}, {Start: 2, End: 1}, {End: time.Hour}, {End: time.Second, Bytes: 1 << 62},
		{End: 1, Bytes: 1e6}} {
		if i.Validate(time.Second) == nil {
			t.Errorf("%+v is accepted", i)
		}
	}
	for _, s := range []Sending{{Streams: -1}, {Streams: 2}, {RTT: time.Hour}, {Retransmitted: -5}, {Busy: time.Hour}} {
		if s.Validate(Spec{}, time.Second) == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
	if ValidateNotes(make([]string, 100)) == nil || ValidateNotes([]string{strings.Repeat("x", 5000)}) == nil {
		t.Error("a flood of warnings is accepted")
	}
}
