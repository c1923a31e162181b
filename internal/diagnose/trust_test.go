package diagnose

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/trust"
)

// TestTrust_Captures changes captures as taps do, each kind with several numbers.
func TestTrust_Captures(t *testing.T) {
	tests := []struct {
		name         string
		file         string
		change       func([]packet) []packet
		loss, timing bool
		reasons      []trust.Code
	}{
		{"nothing odd", "rwnd-jitter.far", unchanged, true, true, nil},
		{"short merged segments at the sender", "rwnd-64k-100m-40.near", unchanged, true, true, codes(trust.MergedTransmit)},
		{"merged segments longer than a round trip", "paced-bbr.near", unchanged, true, false, codes(trust.MergedTransmit)},
		{"received segments merged in pairs", "bott-cubic-20m.far", mergeReceived(2, 20e6), true, true,
			codes(trust.MergedReceive)},
		{"received segments merged by 40", "app-5m.far", mergeReceived(40, 500e6), true, false,
			codes(trust.MergedReceive)},
		{"received segments merged by 40", "bott-4-streams-1m.far", mergeReceived(40, 500e6), true, false,
			codes(trust.MergedReceive)},
		{"1 % of the data not captured", "rwnd-jitter.far", loseData(0.01), true, true, codes(trust.NotCaptured)},
		{"4 % of the data not captured", "rwnd-jitter.far", loseData(0.04), true, false, codes(trust.NotCaptured)},
		{"20 % of the data not captured", "rwnd-jitter.far", loseData(0.2), false, false, codes(trust.NotCaptured)},
		{"clock set back by 15 ms", "rwnd-jitter.far", clockSet(-15e6), true, false, codes(trust.ClockSteps)},
		{"clock set back by an hour", "rwnd-jitter.far", clockSet(-3600e9), true, false, codes(trust.ClockSteps)},
		{"clock of 1 ms, RTT 40 ms", "bott-cubic-20m.far", clockOf(1e6), true, true, nil},
		{"clock of 10 ms, RTT 40 ms", "bott-cubic-20m.far", clockOf(10e6), true, false, codes(trust.CoarseClock)},
		{"SACK blocks cut off", "loss-1pc-cubic.far", snaplen(80), false, true,
			codes(trust.MergedReceive, trust.OptionsCut)},
		{"all options cut off", "rwnd-jitter.far", snaplen(64), false, true, codes(trust.OptionsCut)},
		{"all TCP headers cut off but the SYNs'", "rwnd-jitter.far", cutHeaders(1), true, true, nil},
		{"4 % of the TCP headers cut off", "rwnd-jitter.far", cutHeaders(0.04), true, false,
			codes(trust.NotCaptured, trust.HeadersCut)},
		{"no acknowledgements", "rwnd-jitter.far", keepFrom(true), false, false, codes(trust.OneDirection)},
		{"no data", "rwnd-jitter.far", keepFrom(false), false, false, codes(trust.OneDirection)},
		{"hardly any acknowledgements, with timeouts", "policed-rto.far", loseAcks(0.98), false, false,
			codes(trust.OneDirection, trust.CoarseClock)},
		{"every packet twice", "rwnd-jitter.far", twice, true, true, codes(trust.Duplicates)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			packets := test.change(load(t, filepath.Join("testdata", test.file+".pcap.zst")))
			d := judged(t, packets)
			if d == nil {
				if test.reasons != nil {
					t.Fatal("no direction")
				}
				return
			}
			var got []trust.Code
			for _, r := range d.Trust.Reasons {
				got = append(got, r.Code)
			}
			if d.Trust.Loss != test.loss || d.Trust.Timing != test.timing || !slices.Equal(got, test.reasons) {
				t.Errorf("loss %v, timing %v, %+v", d.Trust.Loss, d.Trust.Timing, d.Trust.Reasons)
			}
			if oneWay := slices.Contains(got, trust.OneDirection); oneWay != (len(d.Evidence) > 0 &&
				d.Evidence[0].Code == verdict.CapturedOneDirection) {
				t.Errorf("%s: %v", d.Limiter, d.Evidence)
			}
			if !d.Trust.Supports(d.Limiter) && d.Confidence == verdict.High {
				t.Errorf("%s has high confidence", d.Limiter)
			}
		})
	}
}

// TestTrust_DropCounter has the capturing program count dropped packets, which nothing in the packets shows.
func TestTrust_DropCounter(t *testing.T) {
	for _, test := range []struct {
		dropped      int64
		loss, timing bool
		most         verdict.Confidence
	}{{0, true, true, verdict.High}, {5, true, true, verdict.High}, {100, true, false, verdict.Medium},
		{600, false, false, verdict.Medium}} {
		f, err := capture.NewFile("test", bytes.NewReader(save(load(t, "testdata/rwnd-64k-100m-40.near.pcap.zst"))))
		if err != nil {
			t.Fatal(err)
		}
		a := must.Get(capture.Analyze(context.Background(), capture.Config{Workers: 1}, f))(t)
		a.Lost = test.dropped
		doc := New(a, 100_000).Record
		d := doc.Connections[0].Directions[0]
		if doc.Trust.Loss != test.loss || doc.Trust.Timing != test.timing || d.Confidence != test.most {
			t.Errorf("%d of %d dropped: %+v, %s confidence", test.dropped, a.Packets, doc.Trust, d.Confidence)
		}
	}
}

func codes(all ...trust.Code) []trust.Code { return all }

func unchanged(all []packet) []packet { return all }

// sender returns the end that sent more payload.
func sender(all []packet) flow.Endpoint {
	bytes := map[flow.Endpoint]int64{}
	most := all[0].seg.Src
	for _, p := range all {
		bytes[p.seg.Src] += int64(p.seg.Payload)
		if bytes[p.seg.Src] > bytes[most] {
			most = p.seg.Src
		}
	}
	return most
}

// keepFrom keeps the packets of the data's sender, or of the other end.
func keepFrom(data bool) func([]packet) []packet {
	return func(all []packet) []packet {
		from := sender(all)
		return slices.DeleteFunc(all, func(p packet) bool { return (p.seg.Src == from) != data })
	}
}

// loseData has the tap miss a share of the data.
func loseData(share float64) func([]packet) []packet {
	return func(all []packet) []packet {
		r := rand.New(rand.NewPCG(5, 6))
		from := sender(all)
		return slices.DeleteFunc(all, func(p packet) bool {
			return p.seg.Src == from && p.seg.Payload > 0 && r.Float64() < share
		})
	}
}

// loseAcks has the tap miss a share of the acknowledgements.
func loseAcks(share float64) func([]packet) []packet {
	return func(all []packet) []packet {
		r := rand.New(rand.NewPCG(5, 6))
		from := sender(all)
		return slices.DeleteFunc(all, func(p packet) bool { return p.seg.Src != from && r.Float64() < share })
	}
}

func snaplen(n int) func([]packet) []packet {
	return func(all []packet) []packet {
		for i := range all {
			all[i].data = all[i].data[:min(len(all[i].data), n)]
		}
		return all
	}
}

// cutHeaders cuts a share of the packets without SYN inside the TCP header.
func cutHeaders(share float64) func([]packet) []packet {
	return func(all []packet) []packet {
		r := rand.New(rand.NewPCG(7, 8))
		for i := range all {
			if all[i].seg.Flags&flow.SYN == 0 && r.Float64() < share {
				all[i].data = all[i].data[:50]
			}
		}
		return all
	}
}

func clockOf(step int64) func([]packet) []packet {
	return func(all []packet) []packet {
		for i := range all {
			all[i].at -= all[i].at % step
		}
		return all
	}
}

// twice captures each packet once more, as with -i any before and behind a bridge.
func twice(all []packet) []packet {
	out := make([]packet, 0, 2*len(all))
	for _, p := range all {
		again := p
		again.at += 3000
		out = append(out, p, again)
	}
	return out
}

// mergeReceived merges up to n segments of data that follow each other within a time, as GRO does. The packets are
// IPv4 in Linux cooked v2.
func mergeReceived(n int, within int64) func([]packet) []packet {
	const ip = 20
	return func(all []packet) []packet {
		from := sender(all)
		var out []packet
		last := -1 // of the data in out
		merged := 0
		for _, p := range all {
			if p.seg.Src != from || p.seg.Payload == 0 {
				out = append(out, p)
				continue
			}
			if last >= 0 && merged < n && out[last].seg.Seq+out[last].seg.Payload == p.seg.Seq && p.at-out[last].at <= within {
				one := out[last]
				one.at = p.at
				one.length += int(p.seg.Payload)
				one.seg.Payload += p.seg.Payload
				total := one.data[ip+2 : ip+4]
				binary.BigEndian.PutUint16(total, binary.BigEndian.Uint16(total)+uint16(p.seg.Payload))
				out = append(out[:last], one) // nothing was acknowledged meanwhile
				merged++
				continue
			}
			out = append(out, p)
			last = len(out) - 1
			merged = 1
		}
		return out
	}
}
