package diagnose

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// pairs are transfers recorded at both ends, with the result of both captures together.
var pairs = []struct {
	name        string
	limiter     verdict.Name
	lost, queue bool // between the taps
}{
	{"bott-cubic-20m", verdict.Bottleneck, true, true}, // the queue overflows
	{"loss-1pc-cubic", verdict.Congestion, true, false},
	{"reader-5m", verdict.ReceiverApplication, false, false},
	{"rwnd-64k-100m-40", verdict.ReceiverWindow, false, false},
}

// secondTap is what happens to the second of two captures.
type secondTap struct {
	name string
	of   func([]packet) []packet
	// open reports whether the verdict need not be the whole capture's, since too little is left.
	open bool
	// unmatched reports whether segments cannot be matched.
	unmatched bool
	offset    float64 // of the clock, nanoseconds
	drift     float64
	share     float64 // of the time that is left, 0: all
}

func secondTaps() []secondTap {
	const hours = 5 * 3600 * 1e9
	return []secondTap{
		{name: "as it was", of: chain()},
		{name: "a clock five hours ahead", of: chain(clockRuns(hours, 0)), offset: hours},
		{name: "a clock days behind that drifts", of: chain(clockRuns(-20*hours, -180e-6)), offset: -20 * hours,
			drift: -180e-6},
		{name: "begun late", of: chain(part(0.4, 1)), share: 0.6},
		{name: "ended early", of: chain(part(0, 0.5)), share: 0.5, open: true},
		{name: "snaplen 96", of: chain(cutAt(96))},
		{name: "snaplen 64", of: chain(cutAt(64))}, // no timestamps
		{name: "other addresses and ports", of: chain(translated)},
		{name: "other addresses and ports, begun late, hours off", share: 0.7, offset: hours, drift: 60e-6,
			of: chain(translated, part(0.3, 1), clockRuns(hours, 60e-6))},
		{name: "other addresses, snaplen 64, begun late", of: chain(translated, part(0.3, 1), cutAt(64)), share: 0.7},
		{name: "client and server guessed the other way", of: chain(translatedTo(40000, 60000), part(0.3, 1)), share: 0.7},
		{name: "merged on receipt", of: chain(func(all []packet) []packet { return merged(all, 300_000) })},
		{name: "IPv6 on one side", of: chain(sixed)},
		{name: "IPv6, begun late", of: chain(sixed, part(0.3, 1)), share: 0.7},
		{name: "a thousandth missing", of: chain(missing(0.001))},
		{name: "a hundredth missing", of: chain(missing(0.01)), open: true},
		{name: "only one direction", of: chain(oneDirection), unmatched: true},
	}
}

func chain(all ...func([]packet) []packet) func([]packet) []packet {
	return func(packets []packet) []packet {
		for _, one := range all {
			packets = one(packets)
		}
		return packets
	}
}

// TestSecondTap has captures of both ends diagnosed together after the second of them went
// through what happens to captures.
func TestSecondTap(t *testing.T) {
	for _, m := range secondTaps() {
		for _, p := range pairs {
			for _, farIsServer := range []bool{true, false} {
				near, far := ".near", ".far"
				if !farIsServer {
					near, far = far, near
				}
				t.Run(fmt.Sprintf("%s/%s%s", m.name, p.name, near), func(t *testing.T) {
					first, second := together(load(t, "testdata/"+p.name+near+".pcap.zst"),
						load(t, "testdata/"+p.name+far+".pcap.zst"))
					r, notes := comparedPackets(t, first, m.of(second))
					b := r.Between
					if m.unmatched {
						if b != nil && b.Ways != nil || len(notes) == 0 {
							t.Fatalf("%+v %q", b, notes)
						}
						return
					}
					if b == nil || b.Ways == nil {
						t.Fatalf("not aligned: %+v, %q", b, notes)
					}
					if r.Limiter != p.limiter && !m.open {
						t.Errorf("%s %s by the %s capture, want %s: %v", r.Confidence, r.Limiter, b.JudgedAt, p.limiter, r.Shares)
					}
					if b.LostBetweenBytes > 0 != p.lost && !m.open || b.LostBeforeBytes > 6*1460 && !m.open ||
						b.LostAfterBytes > 6*1460 && !m.open {
						t.Errorf("lost %+v", *b)
					}
					w := b.Ways
					if waits := 0.25 * w.RTTMinS; (w.DataQueueS > waits) != p.queue || w.AckQueueS > waits {
						t.Errorf("waited %+v", *w)
					}
					off, drift := m.offset/1e9, m.drift
					if d := math.Abs(w.ClockOffsetS - off); d > 1 && m.drift == 0 || math.Abs(w.ClockDrift-drift) > 100e-6 {
						t.Errorf("clock %v ahead and %v fast, want %v and %v", w.ClockOffsetS, w.ClockDrift, off, drift)
					}
					rightShare := b.JudgedAt == "far" || math.Abs(b.CommonS/r.DurationS-m.share) <= 0.1
					if (b.CommonS > 0) != (m.share > 0) || m.share > 0 && !rightShare {
						t.Errorf("%v of %v s in common, want %v", b.CommonS, r.DurationS, m.share)
					}
				})
			}
		}
	}
}

// Ports that were used twice are distinguished by segments, also where only the later time was captured at the other
// end, from its middle on.
func TestPortsUsedTwice(t *testing.T) {
	near, far := load(t, "testdata/short.near.pcap.zst"), load(t, "testdata/rwnd-64k-100m-40.far.pcap.zst")
	again := load(t, "testdata/rwnd-64k-100m-40.near.pcap.zst")
	ends := translatedTo(33000, 4201)
	after := near[len(near)-1].at + 60e9 - again[0].at
	for i := range again {
		again[i].at += after
	}
	d := New(analyzedPackets(t, append(ends(near), ends(again)...)), 1)
	d.Compare(analyzedPackets(t, part(0.3, 1)(ends(far))))
	if len(d.Record.Connections) != 2 {
		t.Fatalf("%d connections", len(d.Record.Connections))
	}
	for _, c := range d.Record.Connections {
		first := strings.HasPrefix(c.StartedAt.String(), time.Unix(0, near[0].at).UTC().Format("2006-01-02 15:04:05"))
		if both := c.Worst().Between != nil; both == first {
			t.Errorf("from %v: compared %v, %q", c.StartedAt, both, c.Notes)
		}
	}
}

// An open verdict with both captures at hand asks for no capture at the other end.
func TestCompare_AsksForNoSecondCapture(t *testing.T) {
	open := verdict.Verdict{Limiter: verdict.Unknown, Candidates: []verdict.Name{verdict.Congestion}}
	all := advice.Fixes(open, advice.Facts{})
	if len(all) != 1 || all[0].Action != advice.CaptureFar {
		t.Fatalf("%+v", all)
	}
	if left := remaining(all); len(left) == 0 || slices.ContainsFunc(left, func(f advice.Fix) bool {
		return f.Action == advice.CaptureFar
	}) {
		t.Errorf("%+v", left)
	}
}

// together is the time that two recordings both hold: one host's clock stamped both.
func together(a, b []packet) (first, second []packet) {
	until := min(a[len(a)-1].at, b[len(b)-1].at)
	later := func(p packet) bool { return p.at > until }
	return slices.DeleteFunc(a, later), slices.DeleteFunc(b, later)
}

func comparedPackets(t testing.TB, near, far []packet) (*record.CapturedDirection, []verdict.Note) {
	t.Helper()
	d := New(analyzedPackets(t, near), 1)
	d.Compare(analyzedPackets(t, far))
	return d.Record.Connections[0].Worst(), slices.Concat(d.Record.Connections[0].Notes, d.Record.Warnings)
}

func analyzedPackets(t testing.TB, all []packet) *capture.Analysis {
	t.Helper()
	f := must.Get(capture.NewFile("test", bytes.NewReader(save(all))))(t)
	defer f.Close()
	a, err := capture.Analyze(t.Context(), capture.Config{Workers: 1, Flow: flow.Config{Passes: Passes}}, f)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// clockRuns sets a capture's clock ahead, nanoseconds, and lets it run faster by a share.
func clockRuns(ahead, faster float64) func([]packet) []packet {
	return func(all []packet) []packet {
		first := all[0].at
		for i := range all {
			all[i].at += int64(ahead) + int64(faster*float64(all[i].at-first))
		}
		return all
	}
}

// part is what lies between two shares of a capture's time.
func part(from, to float64) func([]packet) []packet {
	return func(all []packet) []packet {
		began, took := all[0].at, float64(all[len(all)-1].at-all[0].at)
		return slices.DeleteFunc(all, func(p packet) bool {
			at := float64(p.at-began) / took
			return at < from || at > to
		})
	}
}

func cutAt(length int) func([]packet) []packet {
	return func(all []packet) []packet {
		for i := range all {
			all[i].data = all[i].data[:min(len(all[i].data), length)]
		}
		return all
	}
}

func missing(share float64) func([]packet) []packet {
	return func(all []packet) []packet {
		r := rand.New(rand.NewPCG(5, 6))
		return slices.DeleteFunc(all, func(packet) bool { return r.Float64() < share })
	}
}

func oneDirection(all []packet) []packet {
	first := all[0].seg.Src
	return slices.DeleteFunc(all, func(p packet) bool { return p.seg.Src != first })
}

// translated gives both ends other addresses and ports.
func translated(all []packet) []packet { return translatedTo(61000, 4201)(all) }

func translatedTo(clientPort, serverPort uint16) func([]packet) []packet {
	return func(all []packet) []packet {
		client := all[0].seg.Src
		be := binary.BigEndian
		for i := range all {
			d := bytes.Clone(all[i].data)
			ip := ipHeader(&all[i])
			from, to, a, b := clientPort, serverPort, byte(10), byte(203)
			if all[i].seg.Src != client {
				from, to, a, b = to, from, b, a
			}
			d[ip+12], d[ip+16] = a, b
			tcp := ip + int(d[ip]&15)*4
			be.PutUint16(d[tcp:], from)
			be.PutUint16(d[tcp+2:], to)
			all[i].data = d
		}
		return all
	}
}

// sixed carries what was captured over IPv4 over IPv6, as a translator does.
func sixed(all []packet) []packet {
	be := binary.BigEndian
	for i := range all {
		p := &all[i]
		ip := ipHeader(p)
		d := p.data
		v6 := make([]byte, 40)
		v6[0], v6[6], v6[7] = 0x60, 6, 64
		be.PutUint16(v6[4:], be.Uint16(d[ip+2:])-20)
		v6[8], v6[24] = 0x20, 0x20
		copy(v6[20:], d[ip+12:ip+16])
		copy(v6[36:], d[ip+16:ip+20])
		link := bytes.Clone(d[:ip])
		be.PutUint16(link, 0x86dd) // Linux cooked 2: the protocol comes first
		p.data, p.length = slices.Concat(link, v6, d[ip+20:]), p.length+20
	}
	return all
}
