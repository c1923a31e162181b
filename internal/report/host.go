package report

import (
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// Apply says what became of changes.
func Apply(header record.Header, dids []host.Did, wholeHost, persist bool) *record.Apply {
	a := &record.Apply{Header: header, Applied: true, Changes: hostChanges(dids),
		Scope: text.ApplyScope(wholeHost, persist)}
	for _, d := range dids {
		a.Applied = a.Applied && (d.Outcome == host.Changed || d.Outcome == host.Unchanged)
	}
	return a
}

// Undo says what was taken back.
func Undo(header record.Header, dids []host.Did) *record.Undo {
	return &record.Undo{Header: header, Changes: hostChanges(dids)}
}

// Status says what of this host's settings is fullpipe's.
func Status(header record.Header, states []host.State) *record.Status {
	doc := &record.Status{Header: header, Settings: []record.HostSetting{}}
	for _, s := range states {
		doc.Settings = append(doc.Settings, record.HostSetting{Kind: string(s.Kind), Name: s.Name, Old: s.Old,
			Was: s.Was, New: s.New, Made: s.Made, At: s.At, Boot: s.Boot,
			Now: s.Now, Is: s.Is})
	}
	return doc
}

func hostChanges(dids []host.Did) []record.HostChange {
	all := []record.HostChange{}
	for _, d := range dids {
		all = append(all, record.HostChange{Kind: string(d.Kind), Name: d.Name, Old: d.Old, New: d.New, Took: d.Took,
			Outcome: string(d.Outcome), Reason: d.Reason})
	}
	return all
}
