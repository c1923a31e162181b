package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/spell"
)

// cure returns the value that a harmful parameter should have: the version's default, or where that hurts too, the
// first name of its range that does not.
func (j *judge) cure(p catalog.Parameter) string {
	normal, _ := p.DefaultFor(j.Version)
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

// fix returns the command that sets a parameter to a value; "unset" deletes it. id is the interface of a registry
// value that belongs to one, or "".
func (j *judge) fix(p catalog.Parameter, value, id string) string {
	switch {
	case p.Kind == "registry value":
		return j.registryFix(p, value, id)
	case p.Kind == "sysctl" && p.System == catalog.Linux:
		return fmt.Sprintf("sysctl -w %s='%s'", p.Name, value)
	case p.Kind == "sysctl":
		return fmt.Sprintf("sysctl %s=%s", p.Name, value)
	}
	ways := strings.Split(p.Where, "; ")
	if i := slices.IndexFunc(ways, func(way string) bool { return strings.HasPrefix(way, "netsh ") }); i >= 0 {
		return netshFix(ways[i], strings.ToLower(value)) // all versions take it, also those whose cmdlets refuse
	}
	if set := ways[0]; strings.HasPrefix(set, "Set-NetTCPSetting -") {
		return strings.Replace(set, " -", " -SettingName Internet -", 1) + " " + value
	}
	return p.Name + " " + value
}

// netshFix completes netsh's command of the catalog: "… NAME=", "… set heuristics" or "… on|off".
func netshFix(command, value string) string {
	switch head, choice, _ := strings.Cut(command, "|"); {
	case strings.HasSuffix(command, "="):
		return strings.Replace(command, "=NAME ", "=internet ", 1) + value
	case choice != "":
		return head[:strings.LastIndexByte(head, ' ')+1] + value
	}
	return command + " " + value
}

// word returns a snapshot's text for use in a command, or the placeholder where a shell could take the text for more
// than a word. Windows expands %NAME%.
func word(text, placeholder string) string {
	if spell.IsWord(text) && !strings.Contains(text, "%") {
		return text
	}
	return placeholder
}

// registryFix returns the reg command, which XP introduced; for older systems, what to do in the registry's editor.
func (j *judge) registryFix(p catalog.Parameter, value, id string) string {
	key := p.Where
	ofNT4 := id != "" && !strings.HasPrefix(id, "{") // whose cards have names
	if id != "" {
		id = word(id, "{ID}")
		key = strings.Replace(strings.TrimSuffix(key, `\Interfaces\{id}`), "{id}", id, 1) + `\Interfaces\` + id
		switch {
		case j.System == catalog.Windows9x:
			key = `HKEY_LOCAL_MACHINE\System\CurrentControlSet\Services\Class\NetTrans\` + id
		case ofNT4:
			key = `HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\` + id + `\Parameters\Tcpip`
		}
	}
	remove := value == "unset" || value == ""
	hasReg := j.System != catalog.Windows9x && !ofNT4 && (j.Version == "" || catalog.AtLeast(j.Version, "5.1"))
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
