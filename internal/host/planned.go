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

// PersistFile is the file of the settings that Persist keeps after a reboot of a Linux host.
const PersistFile = "/etc/sysctl.d/90-fullpipe.conf"

// UnsettableError reports a setting that Apply cannot make here.
type UnsettableError struct{ Setting, Why string }

func (e *UnsettableError) Error() string { return e.Setting + ": " + e.Why }

// Try returns the alternative.
func (e *UnsettableError) Try() string {
	return "fullpipe plan with --format writes the text for the system's own tools"
}

// Changes returns a plan's settings as changes of this host. prefix is the plan's route, or "" for the whole host. The
// plan may come from an untrusted file: Changes accepts only names that the catalog has as tunable, checks values by
// the catalog's type and range, and only raises buffers.
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

// change returns one setting as a change of this host.
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
		return raiseOnly(known, Set(Sysctl, known.Name, s.Value)), nil
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
		// It is on unless this value switches it off; netsh's output depends on the language.
		return Change{Kind: Registry, Name: afdKey + `\DynamicSendBufferDisable`}, nil
	}
	return refuse("fullpipe cannot set it by itself")
}

// adapterKey matches the part of a registry key that names a network adapter.
var adapterKey = regexp.MustCompile(`\{[0-9A-Za-z-]{1,64}\}$`)

// tunable returns the catalog's entry of a setting, if it can be written and has the place that the catalog names.
func tunable(s plan.Setting) (catalog.Parameter, bool) {
	families := []string{catalog.Linux}
	if runtime.GOOS == "windows" {
		// Registry values that newer versions kept are in the catalog of the older ones.
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

// raiseOnly makes a change of a buffer's size one that only raises. Minimum and default of tcp_rmem and tcp_wmem stay:
// a plan sets their maxima.
func raiseOnly(known catalog.Parameter, change Change) Change {
	switch known.Name {
	case "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem":
		maximum := "0 0 " + strings.Fields(*change.Value)[2]
		change.Value = &maximum
		change.Raise = true
	case "net.ipv4.tcp_mem", "net.core.rmem_max", "net.core.wmem_max", "net.core.rmem_default", "net.core.wmem_default":
		change.Raise = true
	}
	return change
}

// inert returns why a setting has no effect on this system, or "". Windows ignores the registry's windows since Vista,
// and fullpipe runs on no older version.
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

// Persist adds the file that keeps the changed sysctls after a reboot. Lines of earlier runs stay in it. Routes cannot
// persist: they belong to the network's configuration.
func Persist(changes []Change) ([]Change, error) {
	if scope() != "host" {
		return nil, fmt.Errorf("these settings belong to a network namespace and end with it: they cannot persist")
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

// ApplyLasting makes changes as Apply does, and keeps them after a reboot.
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

// Lasting reports whether the changes persist by themselves, as on Windows.
func Lasting(changes []Change) bool {
	return !slices.ContainsFunc(changes, func(c Change) bool { return c.Kind != Registry && c.Kind != NetTCP })
}

// WholeHost reports whether this process's settings are the host's, not those of another network namespace.
func WholeHost() bool { return scope() == "host" }

// RouteTo returns the prefix of the main table's route to an address, as Route changes name it.
func RouteTo(address netip.Addr) (string, error) { return routeTo(address.Unmap()) }

// ShaperTo returns the name of the shaper for packets to an address, as Qdisc changes name it.
func ShaperTo(address netip.Addr) (string, error) { return shaperTo(address.Unmap()) }
