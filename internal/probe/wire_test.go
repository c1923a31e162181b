package probe

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestMessages_RejectInvalidFields changes one field of a valid message at a time.
func TestMessages_RejectInvalidFields(t *testing.T) {
	const id = "01890a5d-ac96-774b-bcce-b302099a8057"
	token := strings.Repeat("t", PrefaceSize)
	hello := func(change func(*Hello)) error {
		h := Hello{Version: Version, Software: "fullpipe 1.0", Kernel: "Linux 6.1", Congestion: []string{"cubic"}, TimeNs: 1}
		change(&h)
		return h.check()
	}
	offered := func(change func(*offer)) error {
		o := offer{Version: Version, TestID: id}
		change(&o)
		return o.check()
	}
	accepted := func(change func(*accept)) error {
		a := accept{Tokens: []string{token, token}, Port: 5201}
		change(&a)
		return a.check(2)
	}
	for name, tt := range map[string]struct {
		err  error
		want string // "": the message is valid
	}{
		"a hello":                    {hello(func(*Hello) {}), ""},
		"without a clock":            {hello(func(h *Hello) { h.TimeNs = 0 }), ""},
		"before 1970":                {hello(func(h *Hello) { h.TimeNs = -1 }), "before 1970"},
		"software too long":          {hello(func(h *Hello) { h.Software = strings.Repeat("x", 257) }), "longer than"},
		"kernel too long":            {hello(func(h *Hello) { h.Kernel = strings.Repeat("x", 257) }), "longer than"},
		"65 congestion controls":     {hello(func(h *Hello) { h.Congestion = slices.Repeat(h.Congestion, 65) }), "longer"},
		"control codes in software":  {hello(func(h *Hello) { h.Software = "\x1b[2J" }), "no server has"},
		"control codes in kernel":    {hello(func(h *Hello) { h.Kernel = "Linux\n" }), "no server has"},
		"congestion control codes":   {hello(func(h *Hello) { h.Congestion[0] = "\x07" }), "no system has"},
		"congestion name too long":   {hello(func(h *Hello) { h.Congestion[0] = strings.Repeat("x", 65) }), "no system has"},
		"an offer":                   {offered(func(*offer) {}), ""},
		"before versions":            {offered(func(o *offer) { o.Version = 0 }), ""},
		"without a test ID":          {offered(func(o *offer) { o.TestID = "" }), ""},
		"a negative version":         {offered(func(o *offer) { o.Version = -1 }), errBadVersion.Error()},
		"a version to come":          {offered(func(o *offer) { o.Version = Version + 1 }), errBadVersion.Error()},
		"a test ID of a path":        {offered(func(o *offer) { o.TestID = "../../../etc/passwd" }), "no UUID"},
		"a test ID in capitals":      {offered(func(o *offer) { o.TestID = strings.ToUpper(id) }), "no UUID"},
		"a test ID without dashes":   {offered(func(o *offer) { o.TestID = strings.ReplaceAll(id, "-", "0") }), "no UUID"},
		"a test ID with more dashes": {offered(func(o *offer) { o.TestID = "-" + id[1:] }), "no UUID"},
		"an accept":                  {accepted(func(*accept) {}), ""},
		"the control port":           {accepted(func(a *accept) { a.Port = 0 }), ""},
		"one token of two":           {accepted(func(a *accept) { a.Tokens = a.Tokens[1:] }), "1 stream tokens for 2"},
		"a short second token":       {accepted(func(a *accept) { a.Tokens[1] = "xyz" }), "token of 3 bytes"},
		"a negative port":            {accepted(func(a *accept) { a.Port = -1 }), "port -1"},
		"port 65536":                 {accepted(func(a *accept) { a.Port = 65536 }), "port 65536"},
	} {
		if tt.want == "" && tt.err != nil || tt.want != "" && (tt.err == nil || !strings.Contains(tt.err.Error(), tt.want)) {
			t.Errorf("%s: %v; want %q", name, tt.err, tt.want)
		}
	}
}

// TestSession_RefusesInvalidOffers checks a server without exceeded limits.
func TestSession_RefusesInvalidOffers(t *testing.T) {
	cert := must.Get(NewCertificate())(t)
	spec := transfer.Spec{Direction: transfer.Up, Bytes: 1}
	synctest.Test(t, func(t *testing.T) {
		s := &Session{Certificate: cert, Key: NewKey(), Host: noStreams{}, Hello: Hello{Limits: DefaultLimits()}}
		secured, ended := served(t, s)
		if m, err := readMessage(secured, maxAnswer); err != nil || m.kind != kindHello {
			t.Fatalf("%q, %v", m.kind, err)
		}
		for _, tt := range []struct {
			offer       offer
			field, want string
		}{
			{offer{Spec: spec}, "", "no room"},
			{offer{Spec: spec, Version: Version + 1}, "", errBadVersion.Error()},
			{offer{Spec: spec, TestID: "x"}, "TestID", "it is no UUID"},
		} {
			go writeMessage(secured, kindOffer, tt.offer)
			m := must.Get(readMessage(secured, maxAnswer))(t)
			var a accept
			if err := m.decode(kindAccept, &a); err != nil || a.Field != tt.field || a.Error != tt.want || len(a.Tokens) > 0 {
				t.Errorf("%+v: %+v, %v; want %q about %q", tt.offer, a, err, tt.want, tt.field)
			}
		}
		secured.NetConn().Close()
		<-ended
	})
}

// TestResult_ErrorIsBounded keeps 4 KiB of a far end's error.
func TestResult_ErrorIsBounded(t *testing.T) {
	m := message{kindResult, []byte(`{"error":"` + strings.Repeat("x", 5000) + `"}`)}
	if r, err := m.decodeResult(transfer.Spec{}, 0); err != nil || len(r.Error) != 4096 {
		t.Errorf("%d bytes, %v", len(r.Error), err)
	}
}

// TestReadMessage_LengthIsBounded: only results may exceed maxAnswer.
func TestReadMessage_LengthIsBounded(t *testing.T) {
	for _, tt := range []struct {
		k      kind
		length uint32
		want   string
	}{
		{kindHello, maxAnswer, "EOF"}, {kindHello, maxAnswer + 1, "bytes (at most"},
		{kindResult, maxAnswer + 1, "EOF"}, {kindResult, maxResult + 1, "bytes (at most"}, {kindHello, 0, "0 bytes"},
	} {
		frame := append(binary.BigEndian.AppendUint32(nil, tt.length), byte(tt.k))
		if _, err := readMessage(bytes.NewReader(frame), maxResult); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q of %d bytes: %v; want %q", tt.k, tt.length, err, tt.want)
		}
	}
}

// TestJoined_IntervalWithoutBytes checks that a pause at the start of a report is part of its interval.
func TestJoined_IntervalWithoutBytes(t *testing.T) {
	t.Parallel()
	var all transfer.Interval
	for _, i := range []transfer.Interval{
		{Start: 614, End: 816}, {Start: 816, End: 1024, Bytes: 20_000},
		{Start: 1024, End: 1200}, {Start: 1200, End: 1400, Bytes: 9},
	} {
		all = joined(all, i)
	}
	if all.Start != 614 || all.End != 1400 || all.Bytes != 20_009 {
		t.Errorf("%+v", all)
	}
}
