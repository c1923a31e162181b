package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// writer writes one format's text: the change, or its undo.
type writer func(p *Plan, undo bool) []byte

var writers = map[string]writer{
	"reg": (*Plan).reg, "powershell": (*Plan).powershell, "netsh": (*Plan).netsh, "sysctl": (*Plan).sysctl,
	"ip-route": (*Plan).ipRoute, "networkd": (*Plan).networkd, "netplan": (*Plan).netplan,
	"networkmanager": (*Plan).networkManager, "launchdaemon": (*Plan).launchDaemon,
	"shell": (*Plan).shell, "steps": (*Plan).steps,
	"kubernetes": (*Plan).kubernetes, "compose": (*Plan).compose, "docker": (*Plan).docker, "systemd": (*Plan).systemd,
}

// Formats lists the texts that Text can write for one target or another; it writes those
// of Languages for every target.
func Formats() []string {
	return []string{"reg", "powershell", "netsh", "sysctl", "ip-route", "networkd", "netplan", "networkmanager",
		"launchdaemon", "shell", "steps", "kubernetes", "compose", "docker", "systemd"}
}

// Text returns the plan in a format of its target, or its undo: to the previous values if known, else to the system's
// defaults. It refuses a format that the target would ignore. The warnings open the text. Registry files of version 5
// are UTF-16; everything else is UTF-8.
func (p *Plan) Text(format string, undo bool, warnings []string) ([]byte, error) {
	if slices.Contains(Languages(), format) {
		if undo {
			return nil, &ArgumentError{"--undo", "lines of a program have nothing to take back", "leave --undo out"}
		}
		return p.code(format), nil
	}
	write, ok := writers[format]
	if !ok {
		return nil, &ArgumentError{"--format", fmt.Sprintf("%q is not a format", format), "text, json, " +
			strings.Join(append(Formats(), Languages()...), ", ")}
	}
	target, err := ParseTarget(p.Target)
	if err != nil {
		return nil, err
	}
	fit, why := p.formats(target)
	if !slices.Contains(fit, format) {
		message := p.Target + " does not read it"
		if why[format] != "" {
			message = why[format]
		}
		right := "--format text"
		if len(fit) > 0 {
			right = "--format " + strings.Join(fit, ", ")
		}
		return nil, &ArgumentError{"--format", format + ": " + message, right}
	}
	script := *p
	script.head = warnings
	script.savesValues = format == "powershell"
	return write(&script, undo), nil
}

// formats lists what fits the target, and says of some others why they do not.
func (p *Plan) formats(t Target) (fit []string, why map[string]string) {
	switch t.Family {
	case catalog.Linux:
		if p.onRoute() {
			return []string{"ip-route", "networkd", "netplan", "networkmanager"}, map[string]string{
				"sysctl": "a sysctl concerns the whole host, this plan one route"}
		}
		host := "raising a buffer's maximum concerns the host, not a route"
		return []string{"sysctl", "kubernetes", "compose", "docker", "systemd"},
			map[string]string{"ip-route": host, "networkd": host, "netplan": host, "networkmanager": host}
	case catalog.Windows:
		inert := "the registry's TcpWindowSize, GlobalMaxTcpWindowSize and Tcp1323Opts are ignored since Vista"
		if p.Route.Prefix != "" {
			return []string{"powershell"}, map[string]string{"reg": inert, "netsh": "netsh sets the whole host, and this plan " +
				"one destination"}
		}
		if !catalog.AtLeast(t.Version, "6.2") {
			return []string{"netsh"}, map[string]string{"reg": inert, "powershell": "the NetTCPIP cmdlets came with Windows 8 " +
				"and Server 2012"}
		}
		return []string{"powershell", "netsh"}, map[string]string{"reg": inert}
	case catalog.Windows2000, catalog.Windows9x:
		return []string{"reg", "steps"}, map[string]string{"netsh": p.Target + " keeps windows in the registry only",
			"powershell": p.Target + " has no NetTCPIP cmdlets"}
	case catalog.AIX, catalog.Solaris:
		return []string{"shell"}, nil
	case catalog.OpenBSD:
		return nil, map[string]string{"sysctl": "OpenBSD has no setting for its buffers' ceiling"}
	case catalog.MacOS:
		return []string{"launchdaemon"}, map[string]string{
			"sysctl": "whether macOS 11 and later still read /etc/sysctl.conf is not confirmed"}
	}
	return []string{"sysctl"}, nil
}

func (p *Plan) onRoute() bool {
	return slices.ContainsFunc(p.Settings, func(s Setting) bool { return strings.HasPrefix(s.Where, "ip route") })
}

// old is the value that taking back returns to; "" removes the setting.
func (p *Plan) old(s Setting) string {
	if s.Before != "" {
		return s.Before
	}
	target, err := ParseTarget(p.Target)
	if err != nil {
		return ""
	}
	value := present{target: target}.value(s.Name)
	if value == "unset" {
		return ""
	}
	return value
}

// headline says what a text is for, as lines of a comment.
func (p *Plan) headline(comment string, undo bool) string {
	path := fmt.Sprintf("%s, %s round trip", units.Rate(p.Path.RateBps), units.Time(p.Path.RTT))
	if p.Path.Jitter > 0 {
		path += " and " + units.Time(p.Path.Jitter) + " more"
	}
	b := &strings.Builder{}
	if undo {
		fmt.Fprintf(b, "%s fullpipe: takes the plan for %s back\n", comment, p.Target)
		known := slices.ContainsFunc(p.Settings, func(s Setting) bool { return s.Before != "" })
		if !known && !p.savesValues {
			fmt.Fprintf(b, "%s the values before were not known when this was written: these are the system's defaults\n",
				comment)
		}
		return b.String()
	}
	fmt.Fprintf(b, "%s fullpipe: %s, %s, for %s\n", comment, p.Target, p.Role.words(), path)
	fmt.Fprintf(b, "%s window %s (scale %d), send buffer %s\n", comment, units.Size(p.WindowBytes).Exact(), p.WindowScale,
		units.Size(p.SendBytes).Exact())
	for _, w := range p.head {
		fmt.Fprintf(b, "%s warning: %s\n", comment, w)
	}
	return b.String()
}

func (r Role) words() string {
	if r == Both {
		return "sender and receiver"
	}
	return string(r)
}

// nothing says so where a plan changes nothing.
func (p *Plan) nothing(comment string) string {
	if len(p.Settings) > 0 {
		return ""
	}
	return comment + " nothing to change\n"
}

// roleComment opens the settings of a role.
func roleComment(comment string, s Setting) string {
	doubt := ""
	if !s.Confirmed {
		doubt = " (not confirmed by a primary source)"
	}
	return comment + " " + s.Role.words() + doubt + "\n"
}
