package capture

import "github.com/fullpipe-net/fullpipe/internal/flow"

// Shared counts the segments with data that two files both have, of those whose names were kept.
type Shared struct {
	First, Second string // files, in the order of their beginnings
	Segments      int
	Stamped       int  // of the Segments those with a timestamp, which no retransmission repeats
	SameTime      int  // of the Segments those with the same time in both files
	IsCopy        bool // all of the second file's segments have the same time in the first one
}

// maxSightings is how many names of segments are kept. When there are more, half of the names are dropped, and the
// same half in every file.
const maxSightings = 1 << 16

// sightings finds segments that several files hold, by what routers do not change.
type sightings struct {
	seen  map[flow.Name]sighting
	mask  uint64
	files []string
	kept  []int // by file: how many of its segments had a name that is kept
	pairs map[[2]int]*Shared
}

// sighting is a segment's first appearance, and the last file that it appeared in.
type sighting struct {
	at          int64
	first, last int
}

func newSightings() *sightings {
	return &sightings{seen: map[flow.Name]sighting{}, pairs: map[[2]int]*Shared{}}
}

// open begins with the next file.
func (s *sightings) open(name string) {
	s.files = append(s.files, name)
	s.kept = append(s.kept, 0)
}

// add takes segments of the present file.
func (s *sightings) add(segments []flow.Segment) {
	if s == nil {
		return
	}
	file := len(s.files) - 1
	for i := range segments {
		segment := &segments[i]
		name := segment.Name()
		if segment.Payload == 0 || name.Among(s.mask) {
			continue
		}
		one, known := s.seen[name]
		switch {
		case known && one.last == file:
			continue
		case known:
			s.again(one, file, segment.At, name.Stamped())
			one.last = file
		default:
			one = sighting{segment.At, file, file}
		}
		s.kept[file]++
		s.seen[name] = one
		for len(s.seen) > maxSightings {
			s.halve()
		}
	}
}

// again counts a segment that an earlier file has too.
func (s *sightings) again(one sighting, file int, at int64, stamped bool) {
	files := [2]int{one.first, file}
	pair := s.pairs[files]
	if pair == nil {
		pair = &Shared{First: s.files[one.first], Second: s.files[file]}
		s.pairs[files] = pair
	}
	pair.Segments++
	if stamped {
		pair.Stamped++
	}
	if at == one.at {
		pair.SameTime++
	}
}

func (s *sightings) halve() {
	s.mask = s.mask<<1 | 1
	for name := range s.seen {
		if name.Among(s.mask) {
			delete(s.seen, name)
		}
	}
}

// shared returns the pairs of files with segments in common, in the order of the files.
func (s *sightings) shared() (all []Shared) {
	if s == nil {
		return nil
	}
	for first := range s.files {
		for second := range s.files {
			files := [2]int{first, second}
			if pair := s.pairs[files]; pair != nil {
				pair.IsCopy = pair.SameTime == s.kept[second]
				if !pair.IsCopy && pair.SameTime == s.kept[first] {
					pair.First, pair.Second = pair.Second, pair.First
					pair.IsCopy = true
				}
				all = append(all, *pair)
			}
		}
	}
	return all
}
