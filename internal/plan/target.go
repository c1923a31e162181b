package plan

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/didyoumean"
	"github.com/fullpipe-net/fullpipe/internal/model"
)

// Target is an operating system of a plan.
type Target struct {
	Name    string // as --target names it
	Family  string // of the catalog
	Version string // compared with catalog.AtLeast; "" where the family has only one
	// templates says which of Windows' TCP templates can be set; see windows.go.
	templates string
}

// targets lists the systems; Linux, macOS and FreeBSD also take a version: linux-6.1.
var targets = []Target{
	{Name: "linux", Family: catalog.Linux},
	{Name: "macos", Family: catalog.MacOS},
	{Name: "freebsd", Family: catalog.FreeBSD},
	{Name: "windows-95", Family: catalog.Windows9x, Version: "4.0"},
	{Name: "windows-95-winsock2", Family: catalog.Windows9x, Version: "4.0.1"},
	{Name: "windows-98", Family: catalog.Windows9x, Version: "4.10"},
	{Name: "windows-me", Family: catalog.Windows9x, Version: "4.90"},
	{Name: "netbsd", Family: catalog.NetBSD},
	{Name: "openbsd", Family: catalog.OpenBSD},
	{Name: "solaris", Family: catalog.Solaris},
	{Name: "illumos", Family: catalog.Solaris},
	{Name: "aix", Family: catalog.AIX},
	{Name: "windows-nt4", Family: catalog.Windows2000, Version: "4.0"},
	{Name: "windows-2000", Family: catalog.Windows2000, Version: "5.0"},
	{Name: "windows-xp", Family: catalog.Windows2000, Version: "5.1"},
	{Name: "server-2003", Family: catalog.Windows2000, Version: "5.2"},
	{Name: "windows-vista", Family: catalog.Windows, Version: "6.0"},
	{Name: "server-2008", Family: catalog.Windows, Version: "6.0"},
	{Name: "windows-7", Family: catalog.Windows, Version: "6.1"},
	{Name: "server-2008r2", Family: catalog.Windows, Version: "6.1"},
	{Name: "windows-8", Family: catalog.Windows, Version: "6.2", templates: onlyCustom},
	{Name: "server-2012", Family: catalog.Windows, Version: "6.2", templates: onlyCustom},
	{Name: "windows-8.1", Family: catalog.Windows, Version: "6.3", templates: customTemplates},
	{Name: "server-2012r2", Family: catalog.Windows, Version: "6.3", templates: customTemplates},
	{Name: "windows-10", Family: catalog.Windows, Version: "10.0.19041", templates: fewTemplates},
	{Name: "server-2016", Family: catalog.Windows, Version: "10.0.14393", templates: allTemplates},
	{Name: "server-2019", Family: catalog.Windows, Version: "10.0.17763", templates: allTemplates},
	{Name: "server-2022", Family: catalog.Windows, Version: "10.0.20348", templates: undocumentedTemplates},
	{Name: "windows-11", Family: catalog.Windows, Version: "10.0.22631", templates: undocumentedTemplates},
	{Name: "server-2025", Family: catalog.Windows, Version: "10.0.26100", templates: undocumentedTemplates},
}

// customTemplate is the TCP template for one destination that New-NetTransportFilter names.
func (t Target) customTemplate() string {
	if t.templates == onlyCustom {
		return "Custom"
	}
	return "InternetCustom"
}

// netshOnly reports whether the system's own templates refuse Set-NetTCPSetting, so that netsh sets the host's level.
func (t Target) netshOnly() bool { return t.templates == onlyCustom || t.templates == customTemplates }

// Targets lists the names that ParseTarget takes.
func Targets() []string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Name
	}
	return names
}

// ParseTarget reads "windows-2000", "server-2012", "linux", "linux-6.1" or "freebsd-14".
func ParseTarget(name string) (Target, error) {
	asked := strings.ToLower(strings.TrimSpace(name))
	asked = strings.Replace(asked, "windows-server-", "server-", 1)
	if asked == "windows-2003" {
		asked = "server-2003"
	}
	for _, t := range targets {
		if t.Name == asked {
			return t, nil
		}
		version, versioned := strings.CutPrefix(asked, t.Name+"-")
		if versioned && t.Version == "" && version != "" && version[0] >= '0' && version[0] <= '9' && len(version) < 64 {
			return Target{Name: asked, Family: t.Family, Version: version}, nil
		}
	}
	right := strings.Join(Targets(), ", ") + ", or a version: linux-6.1"
	if near := nearTarget(asked); near != "" {
		right = near + "; all: " + right
	}
	return Target{}, &ArgumentError{"--target", fmt.Sprintf("%q is not a system that is known", name), right}
}

// nearTarget returns the system that a name like "win10" or "ws2019" means, or one that is spelt almost so; "" if there
// is none.
func nearTarget(asked string) string {
	short := strings.NewReplacer("windows", "win", "server", "ws", "-", "", "_", "", " ", "", "winws", "ws")
	shorts := make([]string, len(targets))
	for i, t := range targets {
		shorts[i] = short.Replace(t.Name)
		if shorts[i] == short.Replace(asked) || shorts[i] == strings.Replace(short.Replace(asked), "win20", "ws20", 1) {
			return t.Name
		}
	}
	return didyoumean.Nearest(asked, Targets())
}

// bufferPayload returns the bytes of buffer that a byte of window needs.
func (t Target) bufferPayload() float64 {
	if t.Family == catalog.Linux {
		return model.LinuxBufferFactor
	}
	return 1
}

func (t Target) settings(p *Plan, values present, opt Options) error {
	if opt.Route.Prefix != "" && t.Family != catalog.Linux && t.templates == "" {
		return &ArgumentError{"--route", t.Name + " has no settings for one destination", "leave --route out"}
	}
	switch t.Family {
	case catalog.Linux:
		return p.linux(values, opt)
	case catalog.Windows:
		return p.windows(values, opt.Route)
	case catalog.Windows2000:
		p.windows2000(values, opt)
	case catalog.Windows9x:
		p.windows9x(values, opt)
	case catalog.MacOS:
		p.macOS(values)
	case catalog.FreeBSD:
		p.freeBSD(values)
	case catalog.NetBSD:
		p.netBSD(values)
	case catalog.OpenBSD:
		p.openBSD()
	case catalog.Solaris:
		p.solaris(values)
	case catalog.AIX:
		p.aix(values)
	}
	return nil
}

// present has a host's present values: those that were read, else the defaults.
type present struct {
	target Target
	values map[string]string
	memory int64 // the host's, bytes; 0 is not known
}

func (v present) known(name string) (string, bool) {
	value, ok := v.values[name]
	return value, ok
}

// value returns the present value, else the version's default. For an unknown version it returns the oldest default,
// which may be too small.
func (v present) value(name string) string {
	if value, ok := v.values[name]; ok {
		return value
	}
	if name == "DefaultSendWindow" && v.target.Family == catalog.Windows2000 {
		return strconv.Itoa(model.AFDQuota(v.memory))
	}
	entry, ok := catalog.Get(v.target.Family, name)
	if !ok || len(entry.Defaults) == 0 {
		return ""
	}
	if v.target.Version == "" {
		return entry.Defaults[0].Value
	}
	d, _ := entry.DefaultFor(v.target.Version)
	return d.Value
}

// set adds a setting from its entry in the catalog.
func (p *Plan) set(v present, role Role, name, value string) {
	if !p.Role.has(role) {
		return
	}
	before, known := v.known(name)
	if known && before == value {
		return
	}
	entry, ok := catalog.Get(v.target.Family, name)
	if !ok {
		panic("plan: " + name + " is not in the catalog of " + v.target.Family)
	}
	if !entry.In(v.target.Version) {
		return
	}
	p.Settings = append(p.Settings, Setting{Role: role, Name: entry.Name, Where: entry.Where, Value: value,
		Type: entry.Type,
		Unit: entry.Unit, Restart: entry.Restart, Source: entry.Source, Confirmed: entry.Confirmed, Before: before})
}
