package audit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// judge collects findings about one snapshot.
type judge struct {
	*Snapshot
	path       Path
	overridden string // a parameter without effect because another one wins: not judged
	found      []Finding
}

// Judge returns the findings about a host without their sentences: impossible values first, then by the loss on the
// path, then by grade.
func Judge(s *Snapshot, path Path) []Finding {
	path.Connections = max(path.Connections, 1)
	// Collectors call every Windows "windows".
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
		j.add(Finding{Grade: Unknown, Code: UnknownSystem, Parameter: "system", Value: s.System})
		return j.found
	}
	j.catalogued()
	j.interfaceValues()
	j.configured()
	j.interfaces()
	j.unread()
	slices.SortStableFunc(j.found, func(a, b Finding) int {
		if impossible := a.Code == ImpossibleValue; impossible != (b.Code == ImpossibleValue) {
			if impossible {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.CostBps, a.CostBps),
			cmp.Compare(slices.Index(grades, a.Grade), slices.Index(grades, b.Grade)))
	})
	return j.found
}

// unread appends a finding for each part of the snapshot that is missing or has no meaning here.
func (j *judge) unread() {
	var missing []any
	for _, text := range j.Unread {
		missing = append(missing, text)
	}
	level := j.Values["AutoTuningLevelLocal"]
	if _, known := autotuningLevel(level); !known && j.System == catalog.Windows && level != "" {
		missing = append(missing, Finding{Code: UnknownAutotuningLevel, Args: []any{level}})
	}
	for _, name := range slices.Sorted(maps.Keys(j.Values)) {
		entry, known := catalog.Get(j.System, name)
		if value := j.Values[name]; known && entry.Kind == "sysctl" && entry.Type != "name" && !areNumbers(value) {
			missing = append(missing, Finding{Code: NotNumbers, Args: []any{name, value}})
		}
	}
	if j.System == catalog.Windows2000 && j.Version == "" {
		missing = append(missing, Finding{Code: VersionAbsent})
	}
	for _, part := range missing {
		j.add(Finding{Grade: Unknown, Code: Unread, Parameter: "snapshot", Args: []any{part}})
	}
}

// add appends a finding with its parameter's source.
func (j *judge) add(f Finding) {
	if entry, ok := catalog.Get(j.System, f.Parameter); ok && f.Source == "" {
		f.Source = entry.Source
		f.Confirmed = entry.Confirmed
	}
	j.found = append(j.found, f)
}

// goodput returns the goodput in bit/s that a receive window and bytes in flight allow on the path, and the line's.
// limits reports whether they cost so much that they are a limit; without a stated path they are none.
func (j *judge) goodput(window, inFlight int64) (bps, capacity float64, limits bool) {
	if !j.path.stated() || window <= 0 || inFlight <= 0 {
		return 0, 0, false
	}
	path := plan.Path{RateBps: j.path.RateBps, RTT: j.path.RTT}
	bps, capacity = path.Goodput(int(min(window, model.MaxWindow)), int(min(inFlight, model.MaxWindow)))
	return bps, capacity, plan.Limits(bps, capacity)
}

// limit appends a finding if a receive window of that many bytes limits the path. It adds the grade, the rates, and
// the path and the remaining goodput as last values.
func (j *judge) limit(window int64, f Finding) { j.limitBoth(window, model.MaxWindow, f) }

// limitSend is limit for a send buffer that keeps that many bytes in flight.
func (j *judge) limitSend(inFlight int64, f Finding) { j.limitBoth(model.MaxWindow, inFlight, f) }

func (j *judge) limitBoth(window, inFlight int64, f Finding) {
	if bps, capacity, limits := j.goodput(window, inFlight); limits {
		f.Args = append(f.Args, j.path, units.Rate(bps))
		j.addLimit(bps, capacity, f)
	}
}

// addLimit appends a finding that limits the path to a rate instead of another, in bit/s.
func (j *judge) addLimit(rate, instead float64, f Finding) {
	f.Grade = Limits
	f.CapBps = rate
	f.CostBps = instead - rate
	j.add(f)
}

// planCommand returns the command that computes the windows that the path needs, or "" without a stated path.
func (j *judge) planCommand() string {
	if !j.path.stated() {
		return ""
	}
	rate := strings.ReplaceAll(units.Rate(j.path.RateBps).String(), " ", "")
	command := fmt.Sprintf("fullpipe plan --rate %s --rtt %v", rate, j.path.RTT)
	if j.Here { // a target has the defaults of its system
		return command
	}
	return command + " --target " + j.target()
}

// target returns the name by which plan knows the system.
func (j *judge) target() string {
	version := j.Version
	if end := strings.IndexFunc(version, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); end >= 0 {
		version = version[:end]
	}
	switch {
	case j.System == catalog.Windows2000 && version == "": // a .reg file
		return "windows-2000"
	case j.System == catalog.Windows9x:
		return "windows-98"
	case j.System == catalog.Windows, j.System == catalog.Windows2000:
		return windowsTarget(version)
	}
	return j.System + "-" + strings.Trim(version, ".")
}

// catalogued compares every value with what the catalog says of its harm, effect and range.
func (j *judge) catalogued() {
	for _, p := range catalog.All() {
		value, set := j.Values[p.Name]
		if p.System != j.System || !set || p.Name == j.overridden {
			continue
		}
		harm := p.HarmOf(value)
		inert := p.InertIn(j.Version)
		normal, _ := p.DefaultFor(j.Version)
		f := Finding{Grade: Harmful, Parameter: p.Name, Value: value, Command: j.command(p, j.safeValue(p), "")}
		switch {
		case inert != "" && value != normal.Value:
			j.addInert(p, value, "", inert)
		case inert == "" && impossible(p, value):
			// One command mends it: harm of a part of the value is no finding of its own.
			j.found = slices.DeleteFunc(j.found, func(o Finding) bool { return o.Parameter == p.Name && o.Grade == Harmful })
			f.Code = ImpossibleValue
			f.Args = []any{p.Bounds()}
			j.add(f)
		case harm != "" && inert == "" && !j.hasFinding(p.Name):
			f.Code = HarmfulSetting
			f.Args = []any{harm}
			j.add(f)
		}
	}
}

// addInert appends a finding that a parameter has no effect on this system. id is its interface, or "".
func (j *judge) addInert(p catalog.Parameter, value, id, reason string) {
	f := Finding{Grade: Inert, Code: InertSetting, Parameter: p.Name, Value: value, Args: []any{reason}}
	if id != "" {
		f.Code = InertInterfaceSetting
		f.Args = append(f.Args, id)
	}
	switch p.Kind {
	case "registry value":
		f.Command = j.registryCommand(p, "unset", id)
	case "netsh":
		f.Command = j.command(p, j.safeValue(p), "")
	}
	j.add(f)
}

// impossible reports whether a number is outside the parameter's range.
func impossible(p catalog.Parameter, value string) bool {
	return areNumbers(value) && p.Tunable() && p.Type != "name" && p.Check(value) != nil
}

// areNumbers reports whether a value consists of numbers alone.
func areNumbers(value string) bool {
	fields := strings.Fields(value)
	return len(fields) > 0 && !slices.ContainsFunc(fields, func(field string) bool {
		_, err := strconv.ParseInt(field, 0, 64)
		return err != nil && !errors.Is(err, strconv.ErrRange)
	})
}

// hasFinding reports whether a parameter has a finding already.
func (j *judge) hasFinding(parameter string) bool {
	return slices.ContainsFunc(j.found, func(f Finding) bool { return f.Parameter == parameter })
}

// configured judges the lines of configuration files: settings that the kernel no longer has, that will harm after the
// next boot, that differ from the present value, and unknown ones.
func (j *judge) configured() {
	for i, c := range j.Configured {
		name := strings.ReplaceAll(c.Name, "/", ".")
		later := slices.ContainsFunc(j.Configured[i+1:], func(o Configured) bool { return o.Name == c.Name })
		entry, ok := catalog.Get(j.System, name)
		if !ok {
			if isTCPSetting(name) {
				j.add(Finding{Grade: Unknown, Code: UnknownSetting, Parameter: name, Value: c.Value, Args: []any{c.File}})
			}
			continue
		}
		value := strings.Join(strings.Fields(c.Value), " ")
		now, isSet := j.Values[entry.Name]
		switch {
		case entry.Gone != "" && catalog.AtLeast(j.Version, entry.Gone):
			j.add(Finding{Grade: Inert, Code: RemovedSetting, Parameter: entry.Name, Value: value,
				Args: []any{entry.Gone, c.File}})
		case later, isSet && now == value: // another line wins; or already judged as the present value
		case entry.Tunable() && entry.Type != "name" && entry.Check(value) != nil:
			j.add(Finding{Grade: Risk, Code: ImpossibleAtBoot, Parameter: entry.Name, Value: value,
				Args: []any{c.File, entry.Bounds()}})
		case entry.HarmOf(value) != "" && entry.InertIn(j.Version) == "":
			j.add(Finding{Grade: Risk, Code: HarmfulAtBoot, Parameter: entry.Name, Value: value,
				Args: []any{c.File, entry.HarmOf(value)}})
		case isSet && !j.Namespace && !j.Container:
			j.add(Finding{Grade: Risk, Code: DiffersAtBoot, Parameter: entry.Name, Value: now,
				Args: []any{now, value, c.File}})
		}
	}
}

// Overridden returns the file whose line for a name is read after that of file at boot and therefore wins, or "".
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

// isTCPSetting reports whether a sysctl is one that people set to make TCP faster.
func isTCPSetting(name string) bool {
	return strings.HasPrefix(name, "net.ipv4.tcp_") || strings.HasPrefix(name, "net.core.") ||
		strings.HasPrefix(name, "net.inet.tcp.")
}
