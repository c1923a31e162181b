package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/didyoumean"
)

// safeValue returns the value that a harmful parameter should have: the version's default, or if that harms too, the
// first harmless name of its range. It returns "" if the system computes the default from its memory and that is not
// known.
func (j *judge) safeValue(p catalog.Parameter) string {
	normal, _ := p.DefaultFor(j.Version)
	if p.Name == tcpMem {
		if j.MemoryBytes <= 0 {
			return ""
		}
		low := j.MemoryBytes / j.page() / 16 / 4 * 3 // net/ipv4/tcp.c tcp_init_mem()
		return fmt.Sprintf("%d %d %d", low, low/3*4, 2*low)
	}
	if p.HarmOf(normal.Value) == "" {
		return normal.Value
	}
	for name := range strings.SplitSeq(p.Range, ", ") {
		if p.HarmOf(name) == "" {
			return name
		}
	}
	return normal.Value
}

// command returns the command that sets a parameter to a value; "unset" deletes it. id is the interface of a registry
// value that belongs to one, or "".
func (j *judge) command(p catalog.Parameter, value, id string) string {
	switch {
	case p.Kind == "registry value":
		return j.registryCommand(p, value, id)
	case p.Kind == "sysctl" && value == "":
		return ""
	case p.Kind == "sysctl" && p.System == catalog.Linux:
		return fmt.Sprintf("sysctl -w %s='%s'", p.Name, value)
	case p.Kind == "sysctl":
		return fmt.Sprintf("sysctl %s=%s", p.Name, value)
	}
	ways := strings.Split(p.Where, "; ")
	if i := slices.IndexFunc(ways, func(way string) bool { return strings.HasPrefix(way, "netsh ") }); i >= 0 {
		return netshCommand(ways[i], strings.ToLower(value)) // every version accepts it; some cmdlets refuse
	}
	if set := ways[0]; strings.HasPrefix(set, "Set-NetTCPSetting -") {
		return strings.Replace(set, " -", " -SettingName Internet -", 1) + " " + value
	}
	return p.Name + " " + value
}

// netshCommand completes the catalog's netsh command: "… NAME=", "… set heuristics" or "… on|off".
func netshCommand(command, value string) string {
	switch head, choice, _ := strings.Cut(command, "|"); {
	case strings.HasSuffix(command, "="):
		return strings.Replace(command, "=NAME ", "=internet ", 1) + value
	case choice != "":
		return head[:strings.LastIndexByte(head, ' ')+1] + value
	}
	return command + " " + value
}

// shellWord returns a snapshot's text for use in a command, or the placeholder if a shell could read more than one word
// in it. Windows expands %NAME%.
func shellWord(text, placeholder string) string {
	if didyoumean.IsWord(text) && !strings.Contains(text, "%") {
		return text
	}
	return placeholder
}

// registryCommand returns the reg command, which XP introduced; for older systems, the change in the registry's editor.
func (j *judge) registryCommand(p catalog.Parameter, value, id string) string {
	key := p.Where
	isNT4 := id != "" && !strings.HasPrefix(id, "{") // its network cards have names, not identifiers
	if id != "" {
		id = shellWord(id, "{ID}")
		key = strings.Replace(strings.TrimSuffix(key, `\Interfaces\{id}`), "{id}", id, 1) + `\Interfaces\` + id
		switch {
		case j.System == catalog.Windows9x:
			key = `HKEY_LOCAL_MACHINE\System\CurrentControlSet\Services\Class\NetTrans\` + id
		case isNT4:
			key = `HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\` + id + `\Parameters\Tcpip`
		}
	}
	remove := value == "unset" || value == ""
	hasReg := j.System != catalog.Windows9x && !isNT4 && (j.Version == "" || catalog.AtLeast(j.Version, "5.1"))
	if !hasReg {
		if remove {
			return fmt.Sprintf("regedit: delete %s below %s", p.Name, key)
		}
		return fmt.Sprintf("regedit: give %s below %s the value %s", p.Name, key, value)
	}
	if remove {
		return fmt.Sprintf(`reg delete "%s" /v %s /f`, key, p.Name)
	}
	return fmt.Sprintf(`reg add "%s" /v %s /t REG_DWORD /d %s /f`, key, p.Name, value)
}
