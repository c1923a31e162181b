package diagnose

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// outcome is how a verdict compares with the truth.
type outcome int

const (
	right outcome = iota
	unsure
	wrongLow
	wrongMedium
	wrongHigh
	outcomes
)

// known is a capture whose cause is known.
type known struct {
	name, file string
	is         func(d *record.CapturedDirection) bool
}

func (k *known) judge(d *record.CapturedDirection) outcome {
	switch {
	case d == nil || d.Limiter == verdict.Unknown || d.Limiter == verdict.Mixed:
		return unsure
	case k.is(d):
		return right
	case d.Confidence == verdict.High:
		return wrongHigh
	case d.Confidence == verdict.Medium:
		return wrongMedium
	}
	return wrongLow
}

func recordings() (all []known) {
	for _, c := range captured {
		all = append(all, known{c.file, filepath.Join("testdata", c.file+".pcap.zst"),
			func(d *record.CapturedDirection) bool {
				return d.Limiter == c.want || slices.Contains(c.also, d.Limiter)
			}})
	}
	return all
}

// keptCaptures reads what TestBankDiagnose of bench keeps: a limiter is one if a tenth more
// came without it.
func keptCaptures(t *testing.T, dir string) (all []known) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no trial was kept in %s: %v", dir, err)
	}
	for _, file := range files {
		var trial struct {
			Cause    string
			Freed    map[verdict.Name]float64
			Captures []struct {
				Vantage, File string
				Offloads      bool
				Goodput       float64
			}
		}
		text := must.Get(os.ReadFile(file))(t)
		must.Do(t, json.Unmarshal(text, &trial))
		for _, c := range trial.Captures {
			gains := func(n verdict.Name) bool { return trial.Freed[n] >= 1.1*c.Goodput }
			all = append(all, known{fmt.Sprintf("%s at the %s, %s", trial.Cause, c.Vantage, c.File),
				filepath.Join(dir, c.File), func(d *record.CapturedDirection) bool {
					return gains(d.Limiter) || d.Limiter == verdict.Sender && slices.ContainsFunc(d.Candidates, gains) ||
						d.Limiter == verdict.Bottleneck && gains(verdict.LocalQueue)
				}})
		}
	}
	return all
}

// tallies counts outcomes by the kind of mutation.
type tallies map[string][outcomes]int

func (t tallies) count(kind string, as outcome) {
	n := t[kind]
	n[as]++
	t[kind] = n
}

func (t tallies) String() string {
	var out strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(t)) {
		n := t[kind]
		fmt.Fprintf(&out, "\n%-40s right %3d, unsure %3d, wrong: low %2d, medium %2d, high %2d", kind, n[right], n[unsure],
			n[wrongLow], n[wrongMedium], n[wrongHigh])
	}
	return out.String()
}

// kindOf is a mutation's name without its numbers.
func kindOf(name string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(name), func(word string) bool {
		return strings.Trim(word, "-.0123456789") == ""
	}), " ")
}

// merged joins segments of one direction that follow each other within this many nanoseconds and without an answer
// between them, as a receiving host does before a capture sees them.
func merged(all []packet, within int64) []packet {
	out := all[:0]
	last := -1
	for _, p := range all {
		if last == len(out)-1 && last >= 0 && follows(&out[last], &p, within) {
			join(&out[last], &p)
			continue
		}
		if out = append(out, p); p.seg.Payload > 0 {
			last = len(out) - 1
		}
	}
	return out
}

func follows(a, b *packet, within int64) bool {
	const most = 65_000
	s, n := &a.seg, &b.seg
	return s.Src == n.Src && s.Dst == n.Dst && n.Seq == s.Seq+s.Payload && n.Payload > 0 && s.Ack == n.Ack &&
		(s.Flags|n.Flags)&(flow.SYN|flow.FIN|flow.RST) == 0 && b.at-a.at <= within && a.length+b.length < most
}

func join(a, b *packet) {
	ip := ipHeader(a)
	length := a.data[ip+2 : ip+4]
	if a.data[ip]>>4 == 6 {
		length = a.data[ip+4 : ip+6]
	}
	binary.BigEndian.PutUint16(length, binary.BigEndian.Uint16(length)+uint16(b.seg.Payload))
	a.length += int(b.seg.Payload)
	a.seg.Payload += b.seg.Payload
	a.at = b.at
}

// ipHeader is where a packet's IP header begins: after Ethernet's, Linux cooked 2, or nothing.
func ipHeader(p *packet) int { return map[capture.LinkType]int{1: 14, 276: 20}[p.link] }
