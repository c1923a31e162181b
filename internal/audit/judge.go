package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Grade says what kind of finding it is.
type Grade string

const (
	Limits  Grade = "limits"  // caps the stated path
	Harmful Grade = "harmful" // hurts whatever the path
	Risk    Grade = "risk"    // hurts under conditions that are there, or may come
	Inert   Grade = "inert"   // does nothing on this system
	Unknown Grade = "unknown" // the catalog does not know it, or it could not be read
)

// grades in the order in which findings are shown.
var grades = []Grade{Limits, Harmful, Risk, Inert, Unknown}

// Finding is one thing that a person should know about a host.
type Finding struct {
	Grade     Grade  `json:"grade"`
	Parameter string `json:"parameter"`
	Value     string `json:"value,omitempty"`
	Text      string `json:"text"`
	// CapBps is the most that the host allows with it, CostBps what the path loses; both
	// only where a path was stated.
	CapBps  float64 `json:"cap_bps,omitempty"`
	CostBps float64 `json:"cost_bps,omitempty"`
	Fix     string  `json:"fix,omitempty"`
	Source  string  `json:"source,omitempty"`
	// Confirmed says that a primary source states what the finding rests on.
	Confirmed bool `json:"confirmed"`

	impossible bool // the value cannot be: shown before all others
}

// Bad reports whether the finding limits or harms: a risk, a counter or an unknown setting asks for nothing.
func (f Finding) Bad() bool { return f.Grade == Limits || f.Grade == Harmful }

// Path is what the host is judged for; its zero value is no path in particular.
type Path struct {
	RateBps     float64
	RTT         time.Duration
	Connections int // bulk at one time; 0 is 1
	// Program asks for ReceiveDatagrams and SendDatagrams bytes of buffer for its UDP socket.
	Program                         string
	ReceiveDatagrams, SendDatagrams int64
}

func (p Path) stated() bool { return p.RateBps > 0 && p.RTT > 0 }

func (p Path) String() string {
	return fmt.Sprintf("%s x %s", units.Rate(p.RateBps), units.Time(p.RTT))
}

// judge collects findings about one snapshot.
type judge struct {
	*Snapshot
	path  Path
	moot  string // a parameter that another one overrides: not judged
	found []Finding
}

// Judge lists what is to be said about a host, the dearest first: by what it costs on the
// path, then by grade.
func Judge(s *Snapshot, path Path) []Finding {
	path.Connections = max(path.Connections, 1)
	// what a collector calls all of them
	if s.System == catalog.Windows && s.Version != "" && !catalog.AtLeast(s.Version, "6.0") {
		old := *s
		old.System = catalog.Windows2000
		s = &old
	}
	j := &judge{Snapshot: s, path: path}
	switch s.System {
	case catalog.Linux:
		j.linux()
	case catalog.Windows:
		j.windows()
	case catalog.Windows2000:
		j.windows2000()
	case catalog.Windows9x:
		j.windows9x()
	case catalog.MacOS, catalog.FreeBSD:
		j.bsd()
	default:
		j.add(Finding{Grade: Unknown, Parameter: "system", Value: s.System, Text: "fullpipe knows nothing of this system"})
		return j.found
	}
	j.known()
	j.faces()
	j.configured()
	j.interfaces()
	for _, text := range s.Unread {
		j.add(Finding{Grade: Unknown, Parameter: "snapshot", Text: "could not be read: " + text})
	}
	slices.SortStableFunc(j.found, func(a, b Finding) int {
		switch {
		case a.impossible && !b.impossible:
			return -1
		case b.impossible && !a.impossible:
			return 1
		}
		if a.CostBps != b.CostBps {
			return cmp.Compare(b.CostBps, a.CostBps)
		}
		return cmp.Compare(slices.Index(grades, a.Grade), slices.Index(grades, b.Grade))
	})
	return j.found
}

// add enters a finding with its parameter's source.
func (j *judge) add(f Finding) {
	if entry, ok := catalog.Get(j.System, f.Parameter); ok && f.Source == "" {
		f.Source = entry.Source
		f.Confirmed = entry.Confirmed
	}
	j.found = append(j.found, f)
}

// caps enters a finding where a window of so many bytes cannot fill the path.
func (j *judge) caps(parameter, value string, window int64, text, fix string) {
	if !j.path.stated() || window <= 0 {
		return
	}
	most := model.Rate(int(window), j.path.RTT)
	if most >= j.path.RateBps {
		return
	}
	j.add(Finding{Grade: Limits, Parameter: parameter, Value: value, CapBps: most, CostBps: j.path.RateBps - most,
		Text: fmt.Sprintf("%s caps %s at %s", text, j.path, units.Rate(most)), Fix: fix})
}

// planFix is the command that computes the cure of a window.
func (j *judge) planFix() string {
	if !j.path.stated() {
		return ""
	}
	rate := strings.ReplaceAll(units.Rate(j.path.RateBps).String(), " ", "")
	command := fmt.Sprintf("fullpipe plan --rate %s --rtt %v", rate, j.path.RTT)
	if j.Here { // by name it would be a system with its defaults
		return command
	}
	return command + " --target " + j.target()
}

func (j *judge) target() string {
	version := j.Version
	if end := strings.IndexFunc(version, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); end >= 0 {
		version = version[:end]
	}
	if j.System == catalog.Windows2000 && version == "" { // a .reg file
		return "windows-2000"
	}
	if j.System == catalog.Windows9x {
		return "windows-98"
	}
	if j.System == catalog.Windows || j.System == catalog.Windows2000 {
		return windowsTarget(version)
	}
	return j.System + "-" + strings.Trim(version, ".")
}

// known holds every value that the catalog has an opinion on against it.
func (j *judge) known() {
	for _, p := range catalog.All() {
		value, set := j.Values[p.Name]
		if p.System != j.System || !set || p.Name == j.moot {
			continue
		}
		why := p.HarmOf(value)
		inert := p.InertIn(j.Version)
		normal, _ := p.DefaultFor(j.Version)
		switch {
		case inert != "" && value != normal.Value:
			j.add(Finding{Grade: Inert, Parameter: p.Name, Value: value, Text: "does nothing here: " + inert,
				Fix: j.inertFix(p, "")})
		case inert == "" && impossible(p, value):
			j.add(Finding{Grade: Harmful, Parameter: p.Name, Value: value, Fix: j.fix(p, j.cure(p), ""), impossible: true,
				Text: fmt.Sprintf("an impossible value: not within %s; probably an overflow of 32 bits or a slip", p.Bounds())})
		case why != "" && inert == "" && !j.hasFinding(p.Name):
			j.add(Finding{Grade: Harmful, Parameter: p.Name, Value: value, Text: why, Fix: j.fix(p, j.cure(p), "")})
		}
	}
}

// impossible reports whether a number is outside what its parameter takes.
func impossible(p catalog.Parameter, value string) bool {
	fields := strings.Fields(value)
	numbers := !slices.ContainsFunc(fields, func(field string) bool {
		_, err := strconv.ParseInt(field, 0, 64)
		return err != nil
	})
	return numbers && len(fields) > 0 && p.Tunable() && p.Type != "name" && p.Check(value) != nil
}

// inertFix says how to remove a value that does nothing.
func (j *judge) inertFix(p catalog.Parameter, id string) string {
	if p.Kind == "registry value" {
		return j.registryFix(p, "unset", id)
	}
	return "remove it"
}

// hasFinding reports whether a parameter has a finding already, with what it costs.
func (j *judge) hasFinding(parameter string) bool {
	return slices.ContainsFunc(j.found, func(f Finding) bool { return f.Parameter == parameter })
}

// configured looks through the lines of configuration files: those for a kernel that is
// long gone, those that hurt although they do not hold now, those that nobody knows.
func (j *judge) configured() {
	for i, c := range j.Configured {
		name := strings.ReplaceAll(c.Name, "/", ".")
		later := slices.ContainsFunc(j.Configured[i+1:], func(o Configured) bool { return o.Name == c.Name })
		entry, ok := catalog.Get(j.System, name)
		where := " (" + c.File + ")"
		if !ok {
			if tuning(name) {
				j.add(Finding{Grade: Unknown, Parameter: name, Value: c.Value, Text: "fullpipe does not know this setting" + where})
			}
			continue
		}
		value := strings.Join(strings.Fields(c.Value), " ")
		now, holds := j.Values[entry.Name]
		switch {
		case entry.Gone != "" && catalog.AtLeast(j.Version, entry.Gone):
			j.add(Finding{Grade: Inert, Parameter: entry.Name, Value: value, Text: "gone from the kernel since " + entry.Gone +
				where, Fix: "remove the line"})
		case later, holds && now == value: // another line wins; or judged as a value that holds
		case entry.HarmOf(value) != "" && entry.InertIn(j.Version) == "":
			j.add(Finding{Grade: Risk, Parameter: entry.Name, Value: value, Text: "comes with the next start" + where + ": " +
				entry.HarmOf(value), Fix: "remove the line"})
		case holds && !j.Namespace && !j.Container:
			j.add(Finding{Grade: Risk, Parameter: entry.Name, Value: now, Text: "it is " + now + " now and " + value +
				" after the next start" + where})
		}
	}
}

// Overridden is the file whose line for a name comes after that of file at a start, and so
// wins; "" where none does.
func (s *Snapshot) Overridden(file, name string) string {
	winner := ""
	for _, c := range s.Configured {
		if c.Name == name && c.File == file {
			winner = ""
		} else if c.Name == name {
			winner = c.File
		}
	}
	return winner
}

// tuning tells settings that are meant to make TCP faster from the many that are not.
func tuning(name string) bool {
	return strings.HasPrefix(name, "net.ipv4.tcp_") || strings.HasPrefix(name, "net.core.") || strings.HasPrefix(name,
		"net.inet.tcp.")
}
