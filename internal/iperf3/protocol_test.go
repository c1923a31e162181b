package iperf3

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// frame prefixes text with its length.
func frame(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

// Parameters of iperf3 3.12 with -t 1 -b 10M --bidir -w 64K -N -M 1000 -C reno -Z --get-server-output --dscp 8 -O
// 1.
const params312 = `{"tcp":true,"omit":1,"time":1,"num":0,"blockcount":0,"MSS":1000,"nodelay":true,"parallel":1,` +
	`"bidirectional":true,"window":65536,"len":131072,"bandwidth":10000000,"pacing_timer":1000,"TOS":32,` +
	`"congestion":"reno","get_server_output":1,"zerocopy":1,"client_version":"3.12"}`

func TestParseParams_AllVersions(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       Params
	}{
		{"3.12 with many options", params312, Params{Omit: 1, Time: 1, MSS: 1000, NoDelay: true, Streams: 1, Both: true,
			Window: 65536, Len: 131072, Bandwidth: 10e6, PacingTimer: 1000, TOS: 32, Congestion: "reno", ServerOutput: true,
			ZeroCopy: true, ClientVersion: "3.12"}},
		{"3.1 without a version", `{"tcp":true,"omit":0,"time":10,"parallel":1,"len":131072,"client_version":"3.1.3"}`,
			Params{Time: 10, Streams: 1, Len: 131072, ClientVersion: "3.1.3"}},
		{"large numbers with an exponent", `{"tcp":true,"num":1e+18,"bandwidth":2.5e+10,"parallel":2}`,
			Params{Num: 1e18, Bandwidth: 25e9, Streams: 2}},
		{"UDP with wide counters", `{"udp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":3,"len":1448,` +
			`"bandwidth":1048576,"udp_counters_64bit":1,"repeating_payload":0,"dont_fragment":1}`,
			Params{UDP: true, Time: 1, Streams: 3, Len: 1448, Bandwidth: 1048576, Counters64: true, DontFragment: true}},
		{"3.21 keys that nobody here knows", `{"udp":true,"time":1,"gso":1,"gso_dg_size":1448,"gso_bf_size":65160,"gro":1}`,
			Params{UDP: true, Time: 1, Streams: 1}},
	} {
		got, err := ParseParams([]byte(c.text))
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
}

// CVE-2024-53580 (type confusion) and the invalid lengths and ranges of later CVEs.
func TestParseParams_RejectsInvalid(t *testing.T) {
	for _, text := range []string{
		``, `null`, `[]`, `"tcp"`, `{"tcp":true`, `{"tcp":true}{}`, `{"tcp":1}`, `{"tcp":"yes"}`, `{"tcp":null}`,
		`{"time":"10"}`, `{"time":[10]}`, `{"time":{}}`, `{"time":null}`, `{"time":true}`, `{"time":-1}`, `{"time":86401}`,
		`{"time":1.5}`,
		`{"parallel":0}`, `{"parallel":129}`, `{"parallel":1e300}`, `{"window":536870913}`, `{"len":1048577}`, `{"len":-1}`,
		`{"MSS":65536}`, `{"omit":601}`, `{"num":1e30}`, `{"num":-5}`, `{"TOS":256}`, `{"get_server_output":true}`,
		`{"zerocopy":2}`, `{"congestion":5}`, `{"congestion":["reno"]}`, `{"title":` + strings.Repeat("[", 4000) + `}`,
		`{"authtoken":{}}`, `{"reverse":true,"bidirectional":true}`, `{"tcp":true,"udp":true}`, `{"sctp":true}`,
		`{"udp":true,"len":11}`, `{"udp":true,"udp_counters_64bit":1,"len":15}`, `{"udp":true,"len":65508}`,
		`{"congestion":"` + strings.Repeat("x", 65) + `"}`,
	} {
		if p, err := ParseParams([]byte(text)); err == nil {
			t.Errorf("%.60s was taken for %+v", text, p)
		}
	}
}

func TestParams_MarshalJSON(t *testing.T) {
	got, err := json.Marshal(Params{Time: 2, Streams: 1, Len: 131072, PacingTimer: 1000, ClientVersion: "3.12"})
	want := `{"tcp":true,"omit":0,"time":2,"num":0,"blockcount":0,"parallel":1,"len":131072,"pacing_timer":1000,"client_version":"3.12"}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	all := must.Get(ParseParams([]byte(params312)))(t)
	got, _ = json.Marshal(all)
	if string(got) != params312 {
		t.Errorf("%s; want %s", got, params312)
	}
}

// Results of both ends of 3.12 for that test: -1 is sent as 2^64-1.
const results312 = `{"cpu_util_total":3.4539883353047989,"cpu_util_user":0.29806412163633927,"cpu_util_system":3.1557288578620453,` +
	`"sender_has_retransmits":1,"congestion_used":"reno","streams":[{"id":1,"bytes":1310720,"retransmits":0,"jitter":0,` +
	`"errors":0,"packets":0,"start_time":0,"end_time":0.999972},{"id":3,"bytes":1310720,"retransmits":18446744073709551615,` +
	`"jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":0.999979}]}`

func TestParseResults_AllVersions(t *testing.T) {
	r, err := ParseResults([]byte(results312))
	if err != nil {
		t.Fatal(err)
	}
	one, _ := r.Stream(1)
	three, ok := r.Stream(3)
	if one.Bytes != 1310720 || one.Retransmits != 0 || !ok || three.Retransmits != -1 || r.Congestion != "reno" {
		t.Errorf("%+v", r)
	}
	r, err = ParseResults([]byte(`{"cpu_util_total":1,"cpu_util_user":0,"cpu_util_system":1,"sender_has_retransmits":-1,` +
		`"server_output_json":{"start":{}},"streams":[{"id":1,"bytes":5,"retransmits":-1,"jitter":0.000021,"errors":3,` +
		`"omitted_errors":1,"packets":1000,"omitted_packets":100}]}`))
	if err != nil || r.SenderHasRetransmits != -1 || *r.Streams[0].OmittedPackets != 100 ||
		string(r.OutputJSON) != `{"start":{}}` {
		t.Errorf("3.14: %+v, %v", r, err)
	}
	text := must.Get(json.Marshal(r))(t)
	if again, err := ParseResults(text); err != nil || again.Streams[0].Jitter != 0.000021 {
		t.Errorf("our own %s: %+v, %v", text, again, err)
	}
}

func TestParseResults_RejectsInvalid(t *testing.T) {
	const head = `"cpu_util_total":1,"cpu_util_user":0,"cpu_util_system":1,"sender_has_retransmits":1`
	for _, text := range []string{
		`{}`, `{` + head + `}`, `{` + head + `,"streams":{}}`, `{` + head + `,"streams":[5]}`, `{` + head + `,"streams":"x"}`,
		`{` + head + `,"streams":[{"id":1}]}`,
		`{` + head + `,"streams":[{"id":"1","bytes":1,"retransmits":0,"jitter":0,"errors":0,"packets":0}]}`,
		`{` + head + `,"streams":[{"id":1,"bytes":[],"retransmits":0,"jitter":0,"errors":0,"packets":0}]}`,
		`{` + head + `,"streams":[{"id":1,"bytes":1,"retransmits":0,"jitter":-1,"errors":0,"packets":0}]}`,
		`{` + head + `,"streams":[{"id":1,"bytes":1,"retransmits":0,"jitter":0,"errors":0,"packets":0,"omitted_errors":1}]}`,
		`{` + head + `,"streams":[` + strings.Repeat(`{"id":1,"bytes":1,"retransmits":0,"jitter":0,"errors":0,"packets":0},`,
			300) + `{}]}`,
		`{"cpu_util_total":"1","cpu_util_user":0,"cpu_util_system":1,"sender_has_retransmits":1,"streams":[]}`,
		`{` + head + `,"congestion_used":1,"streams":[]}`,
	} {
		if r, err := ParseResults([]byte(text)); err == nil {
			t.Errorf("%.80s was taken for %+v", text, r)
		}
	}
}

func TestReadFrame(t *testing.T) {
	got, err := ReadFrame(bytes.NewReader(frame("{}")), 10)
	if err != nil || string(got) != "{}" {
		t.Errorf("%q, %v", got, err)
	}
	for name, wire := range map[string][]byte{
		"no length": {0, 0}, "cut short": frame("{}")[:5], "too long": frame("01234567890"),
		"four gigabytes": {0xff, 0xff, 0xff, 0xff, '{'}, "negative": {0x80, 0, 0, 0},
	} {
		if got, err := ReadFrame(bytes.NewReader(wire), 10); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	var wire bytes.Buffer
	if err := WriteFrame(&wire, map[string]int{"a": 1}); err != nil || wire.String() != "\x00\x00\x00\x07{\"a\":1}" {
		t.Errorf("%q, %v", wire.String(), err)
	}
}

func TestReadState(t *testing.T) {
	r := bytes.NewReader([]byte{1, 2, 0xff, 0xfe})
	for _, want := range []State{TestStart, TestRunning, AccessDenied, ServerError} {
		if got, err := ReadState(r); got != want || err != nil {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
	if _, err := ReadState(r); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	if State(77).String() != "state 77" || ServerError.String() != "SERVER_ERROR" {
		t.Error("a state's name")
	}
}

func TestNewCookie_IsUnique(t *testing.T) {
	a, b := NewCookie(), NewCookie()
	if a == b || a[36] != 0 || strings.Trim(string(a[:36]), "abcdefghijklmnopqrstuvwxyz234567") != "" {
		t.Errorf("%q, %q", a, b)
	}
}

func TestStreamIDs(t *testing.T) {
	for n, want := range []int{1, 3, 4, 5} {
		if got := StreamID(n); got != want {
			t.Errorf("stream %d has id %d, want %d", n, got, want)
		}
	}
}

func TestRemoteErrors(t *testing.T) {
	for _, c := range []struct {
		wire []byte
		want RemoteError
	}{
		{[]byte{0, 0, 0, 141, 0, 0, 0, 22}, RemoteError{CodeClipped, 22}},
		{[]byte{0, 0, 0, 142}, RemoteError{CodeAuth, 0}},
	} {
		var got *RemoteError
		if err := readRemoteError(bytes.NewReader(c.wire)); !errors.As(err, &got) || *got != c.want {
			t.Errorf("%v: %v", c.wire, err)
		}
	}
	if err := readRemoteError(bytes.NewReader([]byte{0, 0})); err == nil {
		t.Error("half a code was taken")
	}
	var wire bytes.Buffer
	writeRemoteError(&wire, CodeClipped, 22)
	if !bytes.Equal(wire.Bytes(), []byte{0xfe, 0, 0, 0, 141, 0, 0, 0, 22}) {
		t.Errorf("% x", wire.Bytes())
	}
}

func TestHelloReply(t *testing.T) {
	for _, c := range []struct{ hello, answer string }{
		{"9876", "6789"}, {"\x15\xCD\x5B\x07", "\xB1\x68\xDE\x3A"}, {"\x07\x5B\xCD\x15", "\x3A\xDE\x68\xB1"},
	} {
		answer, ok := HelloReply([]byte(c.hello))
		if !ok || string(answer[:]) != c.answer || !IsHelloReply(answer[:]) {
			t.Errorf("%q is answered %q, %v", c.hello, answer, ok)
		}
	}
	for _, noise := range []string{"", "9", "98765", "6789", "GET "} {
		if _, ok := HelloReply([]byte(noise)); ok {
			t.Errorf("%q passed for a greeting", noise)
		}
	}
}

func FuzzParams(f *testing.F) {
	f.Add([]byte(params312))
	f.Add([]byte(`{"udp":true,"num":1e+18,"parallel":128,"len":1e0}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParseParams(text)
		if err != nil {
			return
		}
		if p.Streams < 1 || p.Streams > MaxStreams || p.Len < 0 || p.Len > MaxLen || p.Num < 0 || p.Window < 0 {
			t.Errorf("%+v", p)
		}
		wire := must.Get(json.Marshal(p))(t)
		if again, err := ParseParams(wire); err != nil || again != p {
			t.Errorf("%+v came back as %+v, %v", p, again, err)
		}
	})
}

func FuzzResults(f *testing.F) {
	f.Add([]byte(results312))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ParseResults(text)
		if err == nil && len(r.Streams) > 2*MaxStreams {
			t.Errorf("%d streams", len(r.Streams))
		}
	})
}

func FuzzFrame(f *testing.F) {
	f.Add(frame(params312))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, wire []byte) {
		text, err := ReadFrame(bytes.NewReader(wire), MaxParams)
		if err == nil && (len(text) > MaxParams || len(text) > len(wire)-4) {
			t.Errorf("%d bytes out of %d", len(text), len(wire))
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add([]byte("9876"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if answer, ok := HelloReply(b); ok != (len(b) == 4 && IsHelloReply(answer[:])) {
			t.Errorf("%q is answered %q, %v", b, answer, ok)
		}
	})
}
