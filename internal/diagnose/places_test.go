package diagnose

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestSeveralFiles distinguishes captures at two places, parts of one capture, and one file twice.
func TestSeveralFiles(t *testing.T) {
	const hours = 5 * 3600 * 1e9
	type files = [][]packet
	split := func(all []packet) files {
		n := len(all)
		return files{slices.Clone(all[n/2:]), slices.Clone(all[:n/3]), slices.Clone(all[n/3 : n/2])}
	}
	// Half of the data comes again in the second part, without timestamps, as after a timeout.
	repeated := func(all []packet) files {
		all = cutAt(64)(all)
		n := len(all)
		client := all[0].seg.Src
		again := slices.DeleteFunc(slices.Clone(all[n/2:]), func(p packet) bool { return p.seg.Src != client })
		shift := all[n-1].at - again[0].at + 1e9
		for i := range again {
			again[i].at += shift
		}
		return files{all, again}
	}
	for _, test := range []struct {
		name   string
		of     func(near, far []packet) files
		places bool
		copies int
	}{
		{name: "near and far", places: true, of: func(near, far []packet) files { return files{near, far} }},
		{name: "far and near", places: true, of: func(near, far []packet) files { return files{far, near} }},
		{name: "a clock five hours off", places: true,
			of: func(near, far []packet) files { return files{near, clockRuns(hours, 0)(far)} }},
		{name: "begun late", places: true,
			of: func(near, far []packet) files { return files{near, part(0.4, 1)(far)} }},
		{name: "other addresses", places: true,
			of: func(near, far []packet) files { return files{near, translated(far)} }},
		{name: "without timestamps", places: true,
			of: func(near, far []packet) files { return files{cutAt(64)(near), cutAt(64)(far)} }},
		{name: "merged on receipt", places: true,
			of: func(near, far []packet) files { return files{near, merged(far, 300_000)} }},
		{name: "parts", of: func(near, _ []packet) files { return split(near) }},
		{name: "parts of the far one", of: func(_, far []packet) files { return split(far) }},
		{name: "parts with retransmissions", of: func(near, _ []packet) files { return repeated(near) }},
		{name: "one file twice", copies: 1, of: func(near, _ []packet) files { return files{near, near} }},
		{name: "a file and its beginning", copies: 1,
			of: func(near, _ []packet) files { return files{near[:len(near)/3], near} }},
		{name: "a file and its end", copies: 1,
			of: func(near, _ []packet) files { return files{near[len(near)/3:], near} }},
	} {
		for _, p := range pairs {
			near := load(t, "testdata/"+p.name+".near.pcap.zst")
			far := load(t, "testdata/"+p.name+".far.pcap.zst")
			all := test.of(near, far)
			a := analyzedFiles(t, all)
			copies := Copies(a)
			shared := MayBeTwoPlaces(a)
			places := shared != nil && len(copies) == 0
			if places {
				places = TwoPlaces(shared, analyzedFiles(t, all[:1]), analyzedFiles(t, all[1:2]))
			}
			if places != test.places || len(copies) != test.copies {
				t.Errorf("%s, %s: two places %v, copies %v: %+v", test.name, p.name, places, copies, a.Shared)
			}
		}
	}
}

func analyzedFiles(t *testing.T, all [][]packet) *capture.Analysis {
	t.Helper()
	var files []*capture.File
	for i, packets := range all {
		f := must.Get(capture.NewFile(fmt.Sprint(i), bytes.NewReader(save(packets))))(t)
		defer f.Close()
		files = append(files, f)
	}
	return analysis(t, files)
}
