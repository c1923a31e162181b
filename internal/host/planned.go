package host

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
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
// plan is narrowed to, "" for the host. A buffer's maximum is only ever raised: minimum
// and default stay as they are, and one that is large enough is left out.
func Changes(settings []plan.Setting, prefix string) ([]Change, error) {
	return Config{}.complete().changes(settings, prefix)
}

func (c Config) changes(settings []plan.Setting, prefix string) ([]Change, error) {
	var changes []Change
	for _, s := range settings {
		if why := inert(s); why != "" {
			return nil, &UnsettableError{s.Name, why}
		}
		switch {
		case strings.HasPrefix(s.Where, "/proc/sys/"):
			value := s.Value
			if s.Type == "min default max" {
				raised, err := c.raised(s)
				if err != nil {
					return nil, err
				}
				value = raised
			}
			changes = append(changes, Set(Sysctl, s.Name, value))
		case strings.HasPrefix(s.Where, "ip route") && prefix != "":
			changes = append(changes, Set(Route, prefix+" "+s.Name, s.Value))
		case strings.HasPrefix(s.Where, "HKEY_"):
			change := Set(Registry, s.Where+`\`+s.Name, plan.RegistryText(s))
			if *change.Value == "-" {
				change.Value = nil
			}
			changes = append(changes, change)
		case strings.HasPrefix(s.Where, "Set-NetTCPSetting") && c.stores[NetTCP] != nil:
			changes = append(changes, Set(NetTCP, "Internet/"+s.Name, s.Value))
		case s.Name == "winsock autotuning" && s.Value == "on" && c.stores[Registry] != nil:
			// It is on unless this value switches it off; netsh's answer is localised.
			changes = append(changes, Change{Registry, afdKey + `\DynamicSendBufferDisable`, nil})
		default:
			return nil, &UnsettableError{s.Name, "fullpipe cannot set it by itself"}
		}
	}
	for _, change := range changes {
		if _, err := c.store(change.Kind); err != nil {
			return nil, err
		}
	}
	return changes, nil
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

// raised is the present value of tcp_rmem or tcp_wmem with the larger of both maxima.
func (c Config) raised(s plan.Setting) (string, error) {
	store, err := c.store(Sysctl)
	if err != nil {
		return "", err
	}
	now, err := store.read(s.Name)
	if err != nil {
		return "", err
	}
	has, wants := strings.Fields(*now), strings.Fields(s.Value)
	if len(has) != 3 || len(wants) != 3 {
		return "", fmt.Errorf("%s is %q and shall be %q: not three numbers", s.Name, *now, s.Value)
	}
	least, err := strconv.ParseInt(wants[2], 10, 64)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.Name, err)
	}
	if most, err := strconv.ParseInt(has[2], 10, 64); err == nil && most >= least {
		return *now, nil
	}
	return has[0] + " " + has[1] + " " + wants[2], nil
}

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
	old, err := fileStore{}.read(PersistFile)
	if err != nil {
		return nil, err
	}
	var lines []string
	if old != nil {
		lines = strings.Split(strings.TrimSpace(*old), "\n")
	} else {
		lines = []string{"# Written by fullpipe; fullpipe undo takes it back."}
	}
	for _, change := range changes {
		if change.Kind != Sysctl || change.Value == nil {
			return nil, &UnsettableError{change.Name, "only sysctls can persist this way"}
		}
		lines = slices.DeleteFunc(lines, func(line string) bool {
			name, _, _ := strings.Cut(line, "=")
			return strings.TrimSpace(name) == change.Name
		})
		lines = append(lines, change.Name+" = "+*change.Value)
	}
	return append(slices.Clone(changes), Set(File, PersistFile, strings.Join(lines, "\n")+"\n")), nil
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
