package audit

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
)

// windowsLines reads the output of Windows' own tools, line by line and in any language: .reg files, `reg query`,
// `ver`, `netsh int tcp show global`, `netsh int tcp show heuristics` and the list of Get-NetTCPSetting.
type windowsLines struct {
	*Snapshot
	key      string   // of the registry, below Services
	template string   // of Get-NetTCPSetting
	columns  []string // of Get-NetTCPSetting as a table
	netsh    []string // values of the present block
	isVista  bool     // only Vista and later write this
	is9x     bool     // the keys are those of Windows 95, 98 and Me
	found    bool
}

var (
	registryKey = regexp.MustCompile(`(?i)^\[?HKEY_LOCAL_MACHINE\\SYSTEM\\\w*ControlSet\w*\\Services\\([^\]]*)\]?$`)
	// adapterKey is the key of one network card in NT 4.
	adapterKey = regexp.MustCompile(`(?i)^(\w+)\\parameters\\tcpip$`)
	// registryHeader begins the .reg files of Windows 2000 and later, and of 95 to NT 4.
	registryHeader = regexp.MustCompile(`^(?:Windows Registry Editor Version |REGEDIT4)`)

	registryLine  = regexp.MustCompile(`^"(\w+)"=(?:dword:([0-9a-fA-F]{1,8})|"([^"]*)")$`)
	registryQuery = regexp.MustCompile(`^(\w+)\s+REG_(?:DWORD|SZ)\s+(\S+)$`)
	windowsVer    = regexp.MustCompile(`^Microsoft Windows.*?(\d+)\.(\d+)\.(\d+)`)
	settingLine   = regexp.MustCompile(`^(\w+)(?:\((?:ms|MSS)\))?\s*:\s*(\S.*)$`)
	// Chinese and Japanese systems write a colon of full width.
	netshLine = regexp.MustCompile(`^(.*\S)\s*[:：]\s*(\S+)\s*(?:\*+)?$`)
)

// bindingKey begins the keys of a binding of TCP/IP of Windows 95, 98 and Me, by number: NetTrans\0003.
const bindingKey = `class\nettrans\`

const (
	maxWindowsText = 8 << 20 // bytes; the keys of Tcpip and AFD take less than 1 MiB
	maxWindowsLine = 4096    // bytes; longer lines are ignored
)

// parseWindows reads a file of such lines.
func parseWindows(text []byte) (*Snapshot, error) {
	if len(text) > maxWindowsText {
		return nil, fmt.Errorf("snapshot: a text of Windows longer than 8 MiB: export only the keys " +
			`Services\Tcpip\Parameters and Services\AFD\Parameters`)
	}
	s := &Snapshot{Schema: SnapshotSchema, System: catalog.Windows2000, Values: map[string]string{}}
	w := windowsLines{Snapshot: s}
	for line := range bytes.Lines(text) {
		w.line(string(line))
	}
	if !w.found {
		if registryHeader.Match(text) {
			return nil, fmt.Errorf("snapshot: this .reg file has no value of TCP/IP: it changes nothing, and shows no setting")
		}
		return nil, fmt.Errorf("snapshot: neither JSON, nor what a collector writes, nor a .reg file or the text of netsh "+
			"or Get-NetTCPSetting: it begins %.40q", text)
	}
	w.finish()
	return s, nil
}

func (w *windowsLines) line(text string) {
	text = strings.TrimSpace(text)
	if len(text) > maxWindowsLine {
		return
	}
	if m := windowsVer.FindStringSubmatch(text); m != nil {
		major, _ := strconv.Atoi(m[1])
		minor, _ := strconv.Atoi(m[2])
		w.Version = fmt.Sprintf("%d.%d.%s", major, minor, m[3])
		w.found = true
		return
	}
	if m := registryKey.FindStringSubmatch(text); m != nil {
		w.open(m[1])
		return
	}
	if m := registryLine.FindStringSubmatch(text); m != nil {
		value := m[3]
		if m[2] != "" {
			n, _ := strconv.ParseUint(m[2], 16, 32)
			value = strconv.FormatUint(n, 10)
		}
		w.registry(m[1], value)
		return
	}
	if m := registryQuery.FindStringSubmatch(text); m != nil {
		w.registry(m[1], m[2])
		return
	}
	if m := settingLine.FindStringSubmatch(text); m != nil && w.setting(m[1], strings.TrimSpace(m[2])) {
		return
	}
	if w.row(strings.Fields(text)) {
		return
	}
	w.global(text)
}

// row reads a line of Get-NetTCPSetting as a table. The table's first line names the columns. A row with empty columns
// is not read.
func (w *windowsLines) row(fields []string) bool {
	if len(fields) > 1 && fields[0] == "SettingName" {
		w.columns = fields
		return true
	}
	if len(w.columns) == 0 || len(fields) != len(w.columns) || strings.HasPrefix(fields[0], "--") {
		return false
	}
	for i, name := range w.columns {
		name, _, _ = strings.Cut(name, "(")
		w.setting(name, fields[i])
	}
	return true
}

// open begins a registry key.
func (w *windowsLines) open(key string) {
	w.key = ""
	switch lower := strings.ToLower(key); {
	case lower == `tcpip\parameters`, lower == `afd\parameters`:
		w.key = lower
	case lower == `vxd\mstcp`, lower == `vxd\mstcp\parameters`:
		w.key = lower
		w.is9x = true
	case strings.HasPrefix(lower, `tcpip\parameters\interfaces\`):
		w.key = perInterface + key[len(`tcpip\parameters\interfaces\`):]
	case strings.HasPrefix(lower, bindingKey):
		w.key = perInterface + key[len(bindingKey):]
		w.is9x = true
	case adapterKey.MatchString(key):
		w.key = perInterface + adapterKey.FindStringSubmatch(key)[1]
	default:
		return
	}
	w.found = true
	if w.keys == nil {
		w.keys = map[string]bool{}
	}
	w.keys[w.key] = true
}

// registry adds a value that the catalog knows; the registry ignores the case of its name. It ignores all others, which
// may be private.
func (w *windowsLines) registry(name, value string) {
	isKnown := false
	for _, p := range catalog.All() {
		windows := p.System == catalog.Windows9x || p.System == catalog.Windows2000 || p.System == catalog.Windows
		if windows && strings.EqualFold(p.Name, name) {
			name = p.Name
			isKnown = true
			break
		}
	}
	switch {
	case w.key == `afd\parameters` && strings.EqualFold(name, "DynamicSendBufferDisable"):
		w.Values["winsock autotuning"] = "on"
		if n, err := strconv.ParseInt(value, 0, 64); err == nil && n != 0 {
			w.Values["winsock autotuning"] = "off"
		}
	case w.key == "" || !isKnown:
	case strings.HasPrefix(w.key, perInterface):
		w.Values[w.key+"/"+name] = value
	default:
		w.Values[name] = value
	}
}

// setting reads a line of Get-NetTCPSetting. Its names are the same in every language.
func (w *windowsLines) setting(name, value string) bool {
	if name == "SettingName" {
		w.template = value
		w.isVista = true
		w.found = true
		return true
	}
	if w.template == "" {
		return false
	}
	entry, known := catalog.Get(catalog.Windows, strings.TrimSuffix(strings.TrimSuffix(name, "Mss"), "Ms"))
	if !known || entry.Kind != "cmdlet parameter" {
		return true // not audited
	}
	w.Values[w.template+"/"+entry.Name] = value
	if w.template == "Internet" {
		w.Values[entry.Name] = value
	}
	return true
}

// global reads a line of `netsh int tcp show global`. Its labels depend on the system's language, its values and their
// order do not: the autotuning level is three lines before RFC 1323's.
func (w *windowsLines) global(text string) {
	if strings.HasPrefix(text, "--") {
		w.netsh = nil
		return
	}
	if strings.HasPrefix(text, "**") { // netsh's note that the heuristics override the level above
		w.Values["ScalingHeuristics"] = "Enabled"
		return
	}
	m := netshLine.FindStringSubmatch(text)
	if m == nil {
		return
	}
	label := m[1]
	value := m[2]
	w.netsh = append(w.netsh, value)
	n := len(w.netsh)
	_, notNumber := strconv.Atoi(value)
	isState := slices.Contains([]string{"enabled", "disabled", "default"}, w.netsh[0])
	switch {
	case strings.Contains(label, "Chimney"):
		w.Values["Chimney"] = value
	case n == 2 && isState && notNumber == nil: // of `netsh int tcp show heuristics`: the state, then a threshold
		w.isVista = true
		w.found = true
		w.Values["ScalingHeuristics"] = w.netsh[0]
	case strings.Contains(label, "1323") && n >= 4:
		w.isVista = true
		w.found = true
		w.Values["Timestamps"] = value
		w.Values["EcnCapability"] = w.netsh[n-2]
		w.Values["AutoTuningLevelLocal"], _ = autotuningLevel(w.netsh[n-4])
	}
}

// autotuningLevel returns the catalog's spelling of a level, which netsh writes in small letters.
func autotuningLevel(value string) (level string, known bool) {
	entry, _ := catalog.Get(catalog.Windows, "AutoTuningLevelLocal")
	for name := range strings.SplitSeq(entry.Range, ", ") {
		if strings.EqualFold(name, value) {
			return name, true
		}
	}
	return value, false
}

// finish decides on the system: by its version, or by output that only later systems write.
func (w *windowsLines) finish() {
	switch {
	case w.Version != "" && catalog.AtLeast(w.Version, "6.0"), w.Version == "" && w.isVista:
		w.System = catalog.Windows
	case w.is9x:
		w.System = catalog.Windows9x
	}
}
