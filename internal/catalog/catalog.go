// Package catalog is what is known of the operating systems' TCP parameters: one TOML
// file a family, each entry with its source and whether a primary source confirms it.
// Nothing here reads or changes a system; plan, audit and explain draw on it.
package catalog

import (
	"bytes"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"github.com/fullpipe-net/fullpipe/internal/didyoumean"
)

// Families of systems that share their parameters.
const (
	Linux       = "linux"
	Windows9x   = "windows-9x"   // 95, 98, Me
	Windows2000 = "windows-2000" // NT 4, 2000, XP, Server 2003
	Windows     = "windows"      // Vista and Server 2008 onwards
	MacOS       = "macos"
	FreeBSD     = "freebsd"
	NetBSD      = "netbsd"
	OpenBSD     = "openbsd"
	Solaris     = "solaris" // and illumos
	AIX         = "aix"
)

// Families lists them in the order in which they are shown.
func Families() []string {
	return []string{Linux, Windows, Windows2000, Windows9x, MacOS, FreeBSD, NetBSD, OpenBSD, Solaris, AIX}
}

// Parameter is one setting of one family of systems. An empty field is not known or
// does not apply.
type Parameter struct {
	System       string    `toml:"-" json:"system"`
	Name         string    `toml:"name" json:"name"`
	Kind         string    `toml:"kind" json:"kind"`   // sysctl, registry value, cmdlet parameter, route attribute …
	Where        string    `toml:"where" json:"where"` // path, registry key or command
	Type         string    `toml:"type" json:"type,omitempty"`
	Unit         string    `toml:"unit" json:"unit,omitempty"`
	Range        string    `toml:"range" json:"range,omitempty"`
	Scope        string    `toml:"scope" json:"scope,omitempty"` // the programs or hosts that a change affects
	Acts         string    `toml:"acts" json:"acts,omitempty"`   // when a change takes effect
	Restart      bool      `toml:"restart" json:"restart,omitempty"`
	Effect       string    `toml:"effect" json:"effect"`
	Defaults     []Default `toml:"default" json:"default,omitempty"` // oldest first
	Interactions []string  `toml:"interactions" json:"interactions,omitempty"`
	Harmful      []Harm    `toml:"harmful" json:"harmful,omitempty"`
	Inert        []Inert   `toml:"inert" json:"inert,omitempty"`
	Since        string    `toml:"since" json:"since,omitempty"` // first version with it; empty: all that are known
	Gone         string    `toml:"gone" json:"gone,omitempty"`   // first version without it
	Source       string    `toml:"source" json:"source"`
	// Confirmed says that a primary source states the entry, apart from what is marked
	// Unconfirmed in it.
	Confirmed bool `toml:"confirmed" json:"confirmed"`
}

// Default is the value of a system that nobody changed.
type Default struct {
	Since       string `toml:"since" json:"since,omitempty"` // first version; empty: all that are known
	Value       string `toml:"value" json:"value"`
	Note        string `toml:"note" json:"note,omitempty"`
	Unconfirmed bool   `toml:"unconfirmed" json:"unconfirmed,omitempty"`
}

// Harm is a value that hurts. Exactly one of Value, Above, Below and Set says which.
type Harm struct {
	Value string `toml:"value" json:"value,omitempty"`
	Above int64  `toml:"above" json:"above,omitempty"`
	Below int64  `toml:"below" json:"below,omitempty"`
	Set   bool   `toml:"set" json:"set,omitempty"` // any value at all
	Why   string `toml:"why" json:"why"`
}

// Inert says since which version a parameter does nothing.
type Inert struct {
	Since       string `toml:"since" json:"since"`
	Why         string `toml:"why" json:"why"`
	Unconfirmed bool   `toml:"unconfirmed" json:"unconfirmed,omitempty"`
}

//go:embed *.toml
var files embed.FS

var load = sync.OnceValue(func() []Parameter {
	var all []Parameter
	for _, family := range Families() {
		text, err := files.ReadFile(family + ".toml")
		if err != nil {
			panic(err)
		}
		parameters, err := parse(text)
		if err != nil {
			panic(fmt.Sprintf("%s.toml: %v", family, err))
		}
		all = append(all, parameters...)
	}
	return all
})

func parse(text []byte) ([]Parameter, error) {
	var file struct {
		System    string      `toml:"system"`
		Parameter []Parameter `toml:"parameter"`
	}
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&file); err != nil {
		return nil, err
	}
	for i := range file.Parameter {
		file.Parameter[i].System = file.System
	}
	return file.Parameter, nil
}

// All lists every parameter, family by family.
func All() []Parameter { return slices.Clone(load()) }

// Get is a family's parameter by its full name, case apart.
func Get(system, name string) (Parameter, bool) {
	for _, p := range load() {
		if p.System == system && strings.EqualFold(p.Name, name) {
			return p, true
		}
	}
	return Parameter{}, false
}

// Find returns the parameters of a name: the full name, its last part ("tcp_rmem") or the path below /proc/sys, in any
// case. An empty system searches every family.
func Find(system, name string) []Parameter {
	name = strings.TrimPrefix(strings.TrimSpace(name), "/proc/sys/")
	dotted := strings.ReplaceAll(name, "/", ".")
	var found []Parameter
	for _, p := range load() {
		if system != "" && p.System != system {
			continue
		}
		if strings.EqualFold(p.Name, name) || strings.EqualFold(p.Name, dotted) || strings.EqualFold(lastPart(p.Name), name) {
			found = append(found, p)
		}
	}
	return found
}

// Nearest lists up to three names that look like name, the nearest first.
func Nearest(name string) []string {
	type candidate struct {
		name     string
		distance int
	}
	name = strings.ToLower(name)
	var near []candidate
	for _, p := range load() {
		full := strings.ToLower(p.Name)
		d := min(didyoumean.Distance(name, full), didyoumean.Distance(name, lastPart(full)))
		if len(name) >= 3 && strings.Contains(full, name) {
			d = min(d, 1)
		}
		known := slices.ContainsFunc(near, func(c candidate) bool { return c.name == p.Name })
		if d <= didyoumean.Far(name) && !known {
			near = append(near, candidate{p.Name, d})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return a.distance - b.distance })
	var names []string
	for _, c := range near[:min(3, len(near))] {
		names = append(names, c.name)
	}
	return names
}

// lastPart is a sysctl's name without its tree.
func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// DefaultFor is the default that a version of the system has. An empty version is the
// newest known. ok is false when the catalog names none.
func (p Parameter) DefaultFor(version string) (d Default, ok bool) {
	for _, candidate := range p.Defaults {
		if version == "" || AtLeast(version, candidate.Since) {
			d = candidate
			ok = true
		}
	}
	return d, ok
}

// In reports whether a version of the system has the parameter. An empty version is the newest.
func (p Parameter) In(version string) bool {
	return version == "" || AtLeast(version, p.Since) && (p.Gone == "" || !AtLeast(version, p.Gone))
}

// InertIn says why the parameter does nothing in a version of the system; "" when it
// works. An empty version is the newest.
func (p Parameter) InertIn(version string) string {
	if version != "" && !AtLeast(version, p.Since) {
		return "version " + p.Since + " and later read it"
	}
	for _, in := range p.Inert {
		if version == "" || AtLeast(version, in.Since) {
			return in.Why
		}
	}
	return ""
}

// HarmOf says why a value of the parameter hurts; "" when the catalog knows no harm.
func (p Parameter) HarmOf(value string) string {
	number, err := strconv.ParseInt(value, 0, 64)
	for _, h := range p.Harmful {
		switch {
		case h.Set && value != "" && value != "unset", h.Value != "" && strings.EqualFold(h.Value, value),
			err == nil && h.Above != 0 && number > h.Above,
			err == nil && h.Below != 0 && number < h.Below:
			return h.Why
		}
	}
	return ""
}

// AtLeast compares versions by their leading numbers: "6.18.44-rc1" is at least "6.6".
// Every version is at least "".
func AtLeast(version, least string) bool {
	have := numbers(version)
	want := numbers(least)
	for i, w := range want {
		h := 0
		if i < len(have) {
			h = have[i]
		}
		if h != w {
			return h > w
		}
	}
	return true
}

func numbers(version string) []int {
	var out []int
	for part := range strings.SplitSeq(version, ".") {
		digits := part
		if end := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
			digits = part[:end]
		}
		n, err := strconv.Atoi(digits)
		if err != nil {
			break
		}
		out = append(out, n)
		if digits != part {
			break
		}
	}
	return out
}
