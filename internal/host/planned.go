package host

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/plan"
)

// PersistFile is where Persist keeps what shall hold after a restart of a Linux host.
const PersistFile = "/etc/sysctl.d/90-fullpipe.conf"

// UnsettableError says that a setting is not one that Apply can make here.
type UnsettableError struct{ Setting, Why string }

func (e *UnsettableError) Error() string { return e.Setting + ": " + e.Why }

// Try names the other way.
func (e *UnsettableError) Try() string {
	return "fullpipe plan with --format writes the text for the system's own tools"
}

// Changes turns a plan's settings into changes of this host. prefix is the route that the
// plan is narrowed to, "" for the host. The plan may come from a file of anybody's: only
// names that the catalog knows as tunable are taken, of a value it has the catalog's type
// and range, and a buffer is only ever raised, whatever the plan says of them.
func Changes(settings []plan.Setting, prefix string) ([]Change, error) {
	return Config{}.complete().changes(settings, prefix)
}

func (c Config) changes(settings []plan.Setting, prefix string) ([]Change, error) {
	if prefix != "" && prefix != "default" {
		if _, err := netip.ParsePrefix(prefix); err != nil {
			return nil, &UnsettableError{"route", fmt.Sprintf("%.60q is not a prefix", prefix)}
		}
	}
	var changes []Change
	for _, s := range settings {
		if why := inert(s); why != "" {
			return nil, &UnsettableError{s.Name, why}
		}
		change, err := c.change(s, prefix)
		if err != nil {
			return nil, err
		}
		if _, err := c.store(change.Kind); err != nil {
			return nil, err
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// change is one setting as a change of this host.
func (c Config) change(s plan.Setting, prefix string) (Change, error) {
	refuse := func(why string) (Change, error) { return Change{}, &UnsettableError{fmt.Sprintf("%.60s", s.Name), why} }
	if strings.HasPrefix(s.Where, "HKEY_") {
		if _, _, err := registryName(s.Where + `\` + s.Name); err != nil {
			return refuse(err.Error())
		}
	}
	known, ok := tunable(s)
	if !ok {
		return refuse("not a setting that fullpipe knows as tunable on this system")
	}
	if unset := s.Value == "" || s.Value == "unset"; !unset || known.Kind != "registry value" {
		if err := known.Check(s.Value); err != nil {
			return refuse(err.Error())
		}
	}
	switch {
	case known.Kind == "sysctl" && c.stores[Sysctl] != nil:
		return buffer(known, Set(Sysctl, known.Name, s.Value)), nil
	case known.Kind == "route attribute" && prefix != "":
		return Set(Route, prefix+" "+known.Name, s.Value), nil
	case known.Kind == "registry value" && c.stores[Registry] != nil:
		s.Type = known.Type
		change := Set(Registry, s.Where+`\`+known.Name, plan.RegistryText(s))
		if *change.Value == "-" {
			change.Value = nil
		}
		return change, nil
	case known.Kind == "cmdlet parameter" && c.stores[NetTCP] != nil:
		return Set(NetTCP, "Internet/"+known.Name, s.Value), nil
	case known.Name == "winsock autotuning" && s.Value == "on" && c.stores[Registry] != nil:
		// It is on unless this value switches it off; netsh's answer is localised.
		return Change{Kind: Registry, Name: afdKey + `\DynamicSendBufferDisable`}, nil
	}
	return refuse("fullpipe cannot set it by itself")
}

// adapterKey is the part of a registry key that names one network adapter.
var adapterKey = regexp.MustCompile(`\{[0-9A-Za-z-]{1,64}\}$`)

// tunable is what this system's catalog knows of a setting, where it is one that can be
// written and the setting says the place that the catalog says.
func tunable(s plan.Setting) (catalog.Parameter, bool) {
	families := []string{catalog.Linux}
	if runtime.GOOS == "windows" {
		// What newer Windows kept of the registry stands with the older ones.
		families = []string{catalog.Windows, catalog.Windows2000}
	}
	for _, family := range families {
		p, ok := catalog.Get(family, s.Name)
		if !ok || !p.Tunable() {
			continue
		}
		where := s.Where
		if p.Kind == "registry value" {
			where = adapterKey.ReplaceAllLiteralString(where, "{id}")
		}
		head, _, _ := strings.Cut(p.Where, " ") // of a command: its program
		command := p.Kind != "registry value" && p.Kind != "sysctl"
		switch {
		case where == "":
			return p, p.Kind != "registry value"
		case strings.EqualFold(where, p.Where), command && strings.HasPrefix(where, head):
			return p, true
		}
	}
	return catalog.Parameter{}, false
}

// buffer makes a change of a buffer's size one that only raises. Minimum and default of
// tcp_rmem and tcp_wmem stay as they are: a plan is about their maxima.
func buffer(known catalog.Parameter, change Change) Change {
	switch known.Name {
	case "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem":
		most := "0 0 " + strings.Fields(*change.Value)[2]
		change.Value = &most
		change.Raise = true
	case "net.ipv4.tcp_mem", "net.core.rmem_max", "net.core.wmem_max", "net.core.rmem_default", "net.core.wmem_default":
		change.Raise = true
	}
	return change
}

// inert says why a setting would do nothing on this system; "" where it does something.
// Windows has ignored the registry's windows since Vista, and no older one runs this.
func inert(s plan.Setting) string {
	if runtime.GOOS != "windows" || s.Value == "" || s.Value == "unset" {
		return ""
	}
	if entry, ok := catalog.Get(catalog.Windows, s.Name); ok && entry.Acts == "never" {
		return "this system ignores it: " + entry.Effect
	}
	return ""
}

const afdKey = `HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\AFD\Parameters`

// Persist adds to changes the file that makes their sysctls hold after a restart. What an
// earlier run keeps in it stays. Routes belong to the network's configuration.
func Persist(changes []Change) ([]Change, error) {
	if scope() != "host" {
		return nil, fmt.Errorf("these settings belong to a network namespace and end with it: nothing can persist")
	}
	if Lasting(changes) {
		return changes, nil
	}
	return persist(changes)
}

func persist(changes []Change) ([]Change, error) {
	for _, change := range changes {
		if change.Kind != Sysctl || change.Value == nil {
			return nil, &UnsettableError{change.Name, "only sysctls can persist this way"}
		}
	}
	return append(slices.Clone(changes), Change{Kind: File, Name: PersistFile, Persist: true}), nil
}

// ApplyLasting makes changes as Apply does, and has them hold after a restart.
func ApplyLasting(ctx context.Context, cfg Config, changes []Change) ([]Did, error) {
	lasting, err := Persist(changes)
	if err != nil {
		return nil, err
	}
	return Apply(ctx, cfg, lasting)
}

// Override is a file whose line for a sysctl replaces ours at the next boot.
type Override struct{ File, Name string }

// Overridden returns the files that replace persistent settings at the next boot.
func Overridden(changes []Change) (all []Override, err error) {
	s, err := Snapshot()
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		if file := s.Overridden(PersistFile, c.Name); c.Kind == Sysctl && file != "" {
			all = append(all, Override{file, c.Name})
		}
	}
	return all, nil
}

// Lasting says whether the changes hold after a restart by themselves, as Windows' do.
func Lasting(changes []Change) bool {
	return !slices.ContainsFunc(changes, func(c Change) bool { return c.Kind != Registry && c.Kind != NetTCP })
}

// WholeHost says whether this process's settings are the host's, and not those of a
// network namespace.
func WholeHost() bool { return scope() == "host" }

// RouteTo is the prefix, as Route changes name it, of the main table's route to an
// address: the narrowest scope in which this host knows the destination.
func RouteTo(address netip.Addr) (string, error) { return routeTo(address.Unmap()) }

// ShaperTo names the shaper, as Qdisc changes do, of what this host sends to an address.
func ShaperTo(address netip.Addr) (string, error) { return shaperTo(address.Unmap()) }
