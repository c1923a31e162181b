package advice

import (
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func fixOf(t *testing.T, fixes []Fix, action Action) Fix {
	t.Helper()
	for _, f := range fixes {
		if f.Action == action {
			return f
		}
	}
	t.Fatalf("no %s in %+v", action, fixes)
	return Fix{}
}

// The known facts of the path decide the settings and their expected goodput.
func TestFixesOfAPath(t *testing.T) {
	policed := verdict.Verdict{Limiter: verdict.Congestion, Subtype: verdict.Policer,
		Evidence: []verdict.Evidence{{Code: verdict.PolicedRate, Values: verdict.Values{"steady_bps": 8e6}}}}
	pace := fixOf(t, Fixes(policed, Facts{GoodputBps: 7e6}), PaceBelow)
	if len(pace.Settings) > 0 || pace.Expected != nil {
		t.Errorf("the mean of a transfer is no rate to pace at: %+v", pace)
	}
	paced := policed
	paced.Evidence = []verdict.Evidence{{Code: verdict.PacedLosesNothing, Values: verdict.Values{"paced_bps": 8e6}}}
	pace = fixOf(t, Fixes(paced, Facts{}), PaceBelow)
	if len(pace.Settings) != 1 || pace.Settings[0].Value != "1000000" {
		t.Errorf("8 Mbit/s are a million bytes a second: %+v", pace)
	}

	// As many connections as were measured to fill the path.
	for fills, want := range map[float64]string{0: "4", 7: "7"} {
		perFlow := verdict.Verdict{Limiter: verdict.Bottleneck, Subtype: verdict.PerFlow, Evidence: []verdict.Evidence{
			{Code: verdict.StreamsCarryMore, Values: verdict.Values{"fill_streams": fills}}}}
		several := fixOf(t, Fixes(perFlow, Facts{}), ParallelFlows)
		if len(several.Settings) != 1 || several.Settings[0].Value != want {
			t.Errorf("%v fill the path: %+v", fills, several)
		}
	}

	// 1 MB at 100 ms: 10 segments take 7 round trips to open, 100 take 4 (10 × (2^7 - 1)
	// segments are 1.8 MB, 100 × (2^3 - 1) 1.01 MB).
	short := Facts{GoodputBps: 8e6, Bytes: 1000000, DurationS: 1, RTTS: 0.1, MSSBytes: 1448}
	start := fixOf(t, Fixes(verdict.Verdict{Limiter: verdict.SlowStart}, short), InitialWindow)
	if len(start.Settings) != 2 || start.Settings[0].Name != "initcwnd" || start.Settings[1].Name != "initrwnd" ||
		start.Settings[0].Value != "100" || start.Expected == nil || start.Expected.HighBps <= 8e6/0.75 ||
		start.Expected.HighBps >= 8e6/0.55 {
		t.Errorf("%+v, %+v", start, start.Expected)
	}

	known := Fixes(verdict.Verdict{Limiter: verdict.ReceiverWindow}, Facts{GoodputBps: 5e6, PathBps: 20e6})
	if e := known[0].Expected; e == nil || e.LowBps != 5.5e6 || e.HighBps != 20e6 || e.AtLeast {
		t.Errorf("%+v", e)
	}
	// Advice that leads from cubic to bbr does not lead back.
	for _, c := range []struct {
		v       verdict.Verdict
		control string
		want    bool
	}{
		{verdict.Verdict{Limiter: verdict.Congestion}, "cubic", true},
		{verdict.Verdict{Limiter: verdict.Congestion}, "bbr", false},
		{verdict.Verdict{Limiter: verdict.Congestion}, "bbr2", false},
		{verdict.Verdict{Limiter: verdict.Congestion, Subtype: verdict.Reordering}, "cubic", true},
		{verdict.Verdict{Limiter: verdict.Congestion, Subtype: verdict.Reordering}, "bbr", false},
		{policed, "cubic", false}, {policed, "bbr", false},
	} {
		var got bool
		for _, f := range Fixes(c.v, Facts{Congestion: c.control}) {
			got = got || f.Action == OtherControl
		}
		if got != c.want {
			t.Errorf("%s, %s: another control is advised: %t", c.v.Subtype, c.control, got)
		}
	}
	// A sender cannot distinguish these, so the first action does.
	open := verdict.Verdict{Limiter: verdict.ReceiverWindow, Confidence: verdict.Low,
		Candidates: []verdict.Name{verdict.ReceiverWindow, verdict.ReceiverApplication}}
	if first := Fixes(open, Facts{})[0]; first.Action != AskReceiver {
		t.Errorf("%+v", first)
	}
}

func TestFixes_FullAutomaticBuffer(t *testing.T) {
	for _, tt := range []struct {
		name  string
		v     verdict.Verdict
		facts Facts
		first Action
		end   End
		want  Ceiling
	}{
		{"send buffer at its ceiling", verdict.Verdict{Limiter: verdict.SendBuffer},
			Facts{SendBufferMax: 4 << 20, PathBps: 500e6, RTTS: 0.2, MSSBytes: 1448}, RaiseCeilings, Sender,
			Ceiling{"net.ipv4.tcp_wmem", 4 << 20, 25004064}},
		{"capacity not known", verdict.Verdict{Limiter: verdict.SendBuffer}, Facts{SendBufferMax: 4 << 20, RTTS: 0.2,
			MSSBytes: 1448}, RaiseCeilings, Sender, Ceiling{"net.ipv4.tcp_wmem", 4 << 20, 0}},
		{"receive buffer at its ceiling", verdict.Verdict{Limiter: verdict.ReceiverWindow, Subtype: verdict.Fixed},
			Facts{ReceiveBufferMax: 6 << 20, PathBps: 1e9, RTTS: 0.1, MSSBytes: 1448}, RaiseCeilings, Receiver,
			Ceiling{"net.ipv4.tcp_rmem", 6 << 20, 25004064}},
		{"no window scale", verdict.Verdict{Limiter: verdict.ReceiverWindow, Subtype: verdict.Unscaled},
			Facts{ReceiveBufferMax: 6 << 20}, WindowScaling, Both, Ceiling{}},
		{"a level of Windows' autotuning", verdict.Verdict{Limiter: verdict.ReceiverWindow,
			Subtype: verdict.AutotuneCeiling, Evidence: []verdict.Evidence{{Limiter: verdict.ReceiverWindow,
				Values: verdict.Values{"window_bytes": 262_140}}}}, Facts{Receiver: Windows10, PathBps: 100e6, RTTS: 0.08,
			MSSBytes: 1460}, RaiseCeilings, Receiver, Ceiling{"autotuninglevel=highlyrestricted", 262_140, 1_001_560}},
		{"the next level", verdict.Verdict{Limiter: verdict.ReceiverWindow,
			Subtype: verdict.AutotuneCeiling, Evidence: []verdict.Evidence{{Limiter: verdict.ReceiverWindow,
				Values: verdict.Values{"window_bytes": 1_048_560}}}}, Facts{Receiver: Windows}, RaiseCeilings, Receiver,
			Ceiling{"autotuninglevel=restricted", 1_048_560, 0}},
		{"the other buffer is full", verdict.Verdict{Limiter: verdict.SendBuffer}, Facts{ReceiveBufferMax: 6 << 20},
			LargerWindows, Both, Ceiling{}},
		{"fixed by the program", verdict.Verdict{Limiter: verdict.SendBuffer}, Facts{}, LargerWindows, Both, Ceiling{}},
	} {
		fixes := Fixes(tt.v, tt.facts)
		var got Ceiling
		if fixes[0].Ceiling != nil {
			got = *fixes[0].Ceiling
		}
		if fixes[0].Action != tt.first || fixes[0].End != tt.end || got != tt.want {
			t.Errorf("%s: %+v, ceiling %+v", tt.name, fixes[0], got)
		}
		leave := slices.ContainsFunc(fixes, func(f Fix) bool { return f.Action == LargerWindows })
		if leave == (tt.first == RaiseCeilings) {
			t.Errorf("%s: advises to leave buffers alone %v: %+v", tt.name, leave, fixes)
		}
	}
}

func TestFixes_SegmentSizeThatWasMeasuredToPass(t *testing.T) {
	vanish := verdict.Verdict{Limiter: verdict.MTUBlackHole}
	for _, tt := range []struct {
		name    string
		passing int
		want    string
	}{
		{"probed 1400", 1360, "1360"},
		{"probed 9000 on a path of 9216", 8960, "8960"},
		{"the smallest", 536, "536"},
		{"nothing measured", 0, ""},
		{"only short messages passed", 90, ""},
	} {
		fix := fixOf(t, Fixes(vanish, Facts{MSSBytes: 1448, PassingMSS: tt.passing}), SmallerSegment)
		got := ""
		if len(fix.Settings) > 0 {
			got = fix.Settings[0].Value
		}
		if got != tt.want || fix.Settings == nil {
			t.Errorf("%s: TCP_MAXSEG %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestFixes_WindowsMTUThatWasMeasuredToPass(t *testing.T) {
	for _, tt := range []struct {
		name      string
		mtu, mss  int
		protocol  string
		wantValue string
	}{
		{"IPv4", 1400, 1360, "ipv4", "1400"},
		{"IPv6", 1280, 1220, "ipv6", "1280"},
	} {
		facts := Facts{MSSBytes: 1448, PassingMTU: tt.mtu, PassingMSS: tt.mss, Sender: Windows, Receiver: Windows}
		got := fixOf(t, Fixes(verdict.Verdict{Limiter: verdict.MTUBlackHole}, facts), SmallerSegment).Settings
		if len(got) != 1 || got[0].Value != tt.wantValue || !strings.Contains(got[0].Where, " "+tt.protocol+" ") {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

// Where a disturbance left hardly any confidence, measuring again comes before what would mend a guess.
func TestADisturbedMeasurementIsMeasuredAgain(t *testing.T) {
	v := verdict.Verdict{Limiter: verdict.Congestion, Confidence: verdict.Low,
		Evidence: []verdict.Evidence{{Code: verdict.LossBelowBest}, {Code: verdict.RunqueueWaited}}}
	fixes := AskAgain(v, Fixes(v, Facts{}))
	if fixes[0].Action != MeasureAgain || !fixes[0].Action.OnlyObserves() || len(fixes) < 2 ||
		fixes[0].Settings == nil {
		t.Errorf("%+v", fixes)
	}
	v.Confidence = verdict.Medium
	if fixes := AskAgain(v, Fixes(v, Facts{})); fixes[0].Action == MeasureAgain {
		t.Errorf("%+v", fixes[0])
	}
	v.Confidence, v.Evidence = verdict.Low, v.Evidence[:1]
	if fixes := AskAgain(v, Fixes(v, Facts{})); fixes[0].Action == MeasureAgain {
		t.Errorf("%+v", fixes[0])
	}
}

func TestFixes_OfferedWhereTheyExist(t *testing.T) {
	congestion := verdict.Verdict{Limiter: verdict.Congestion}
	for _, tt := range []struct {
		name             string
		sender, receiver string // kernels
		action           Action
		want             []End
		system           System // of the first
	}{
		{"Linux to Linux", "Linux 6.18.1", "Linux 6.1.0", OtherControl, []End{Sender}, Linux},
		{"not known", "", "", OtherControl, []End{Sender}, Linux},
		{"Windows 10 has no BBR", "windows 10.0.19045", "Linux 6.1.0", OtherControl, nil, ""},
		{"Server 2022 has no BBR", "windows 10.0.20348", "Linux 6.1.0", OtherControl, nil, ""},
		{"Windows 11 24H2", "windows 10.0.26100", "Linux 6.1.0", OtherControl, []End{Sender}, Windows},
		{"a version of Windows that is not known", "windows", "", OtherControl, []End{Sender}, Windows},
		{"macOS has one for all", "darwin", "", OtherControl, nil, ""},
		{"FreeBSD", "freebsd", "Linux 6.1.0", OtherControl, []End{Sender}, FreeBSD},
		{"ECN at two systems", "windows 10.0.19045", "Linux 6.1.0", MarkCongestion, []End{Sender, Receiver}, Windows10},
		{"ECN at one system", "darwin", "darwin", MarkCongestion, []End{Both}, MacOS},
		{"the receiver's window", "Linux 6.1.0", "windows 10.0.19045", WindowOfBDP, []End{Receiver}, Windows10},
		{"Windows XP has no BBR", "windows 5.1.2600", "windows 5.1.2600", OtherControl, nil, ""},
		{"Windows XP has no ECN", "windows 5.1.2600", "windows 5.1.2600", MarkCongestion, nil, ""},
		{"Windows 98's window", "Linux 6.1.0", "windows-9x 4.10", WindowOfBDP, []End{Receiver}, Windows2000},
		{"several connections", "windows 10.0.19045", "Linux 6.1.0", ParallelFlows, []End{Both}, Linux},
	} {
		var got []End
		var system System
		for _, f := range Fixes(congestion, Facts{Sender: SystemOf(tt.sender), Receiver: SystemOf(tt.receiver)}) {
			if f.Action == tt.action {
				if got == nil {
					system = f.System
				}
				got = append(got, f.End)
			}
		}
		if !slices.Equal(got, tt.want) || system != tt.system {
			t.Errorf("%s: at %v for %q, want %v for %q", tt.name, got, system, tt.want, tt.system)
		}
	}
}

// TestFixes_DelayedAckTimer checks that a window of one segment is enlarged at the receiver, that a receiver which
// acknowledges several segments by its timer alone is mended first, and that blocks are the sender's.
func TestFixes_DelayedAckTimer(t *testing.T) {
	tests := []struct {
		code    verdict.Code
		window  float64 // bytes, with segments of 1,448
		actions []Action
		end     End
	}{
		{verdict.WindowAwaitsAckTimer, 730, []Action{UnfixBuffer, LargerWindows, QuickAck}, Receiver},
		{verdict.WindowAwaitsAckTimer, 2000, []Action{UnfixBuffer, LargerWindows, QuickAck}, Receiver},
		{verdict.WindowAwaitsAckTimer, 2896, []Action{QuickAck, UnfixBuffer, LargerWindows}, Receiver},
		{verdict.WindowAwaitsAckTimer, 14480, []Action{QuickAck, UnfixBuffer, LargerWindows}, Receiver},
		{verdict.CapturedAckTimer, 0, []Action{SendBufferOfTwo, QuickAck}, Sender},
	}
	for _, test := range tests {
		for _, receiver := range Systems() {
			v := verdict.Verdict{Limiter: verdict.NagleDelayedAck, Subtype: verdict.AckTimer, Confidence: verdict.Medium,
				Evidence: []verdict.Evidence{{Limiter: verdict.NagleDelayedAck, Code: test.code,
					Values: verdict.Values{"window_bytes": test.window}}}}
			fixes := Fixes(v, Facts{Receiver: receiver, MSSBytes: 1448})
			var actions []Action
			for _, f := range fixes {
				actions = append(actions, f.Action)
			}
			last := fixes[slices.Index(actions, QuickAck)]
			if !slices.Equal(actions, test.actions) || fixes[0].End != test.end || last.System != receiver ||
				len(last.Settings) != 1 {
				t.Errorf("%s, receiver %q: %v at the %s; %+v", test.code, receiver, actions, fixes[0].End, last)
			}
		}
	}
}

// TestFixes_SmallWindowWithoutScaling enlarges the buffer first, up to what a window without scaling can be.
func TestFixes_SmallWindowWithoutScaling(t *testing.T) {
	for _, window := range []float64{2920, 8192, 17520, 32120} {
		f := Facts{GoodputBps: window * 8 / 0.05, PathBps: 100e6, RTTS: 0.05, Unscaled: true}
		all := Fixes(verdict.Verdict{Limiter: verdict.ReceiverWindow, Subtype: verdict.Fixed}, f)
		if all[0].Action != LargerWindows || all[1].Action != WindowScaling {
			t.Errorf("%g bytes: %s, %s", window, all[0].Action, all[1].Action)
		}
		if high := all[0].Expected.HighBps; high < 10.4e6 || high > 10.6e6 {
			t.Errorf("%g bytes: at most %g bit/s expected, want 65,535 bytes in 50 ms", window, high)
		}
	}
}
