package plan

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
)

// reg is a file for regedit: version 4 (ANSI) for 95, 98 and Me, version 5 (UTF-16LE
// with its mark) for 2000 and later. Every line ends in CRLF; a value of "-" deletes.
func (p *Plan) reg(undo bool) []byte {
	target, _ := ParseTarget(p.Target)
	old := target.Family == catalog.Windows9x || !catalog.AtLeast(target.Version, "5.0")
	b := &strings.Builder{}
	if old {
		b.WriteString("REGEDIT4\n\n")
	} else {
		b.WriteString("Windows Registry Editor Version 5.00\n\n")
	}
	b.WriteString(p.headline(";", undo))
	b.WriteString("; takes effect after a restart\n" + p.nothing(";"))
	if !undo && len(p.Settings) > 0 {
		b.WriteString("; " + registryDanger + ". Export first:\n")
		for _, command := range p.exports(target) {
			b.WriteString(";   " + command + "\n")
		}
	}
	key := ""
	for _, s := range p.byKey() {
		if s.Where != key {
			key = s.Where
			fmt.Fprintf(b, "\n[%s]\n", key)
		}
		fmt.Fprint(b, roleComment(";", s))
		value := s.Value
		if undo {
			value = s.Before
		}
		fmt.Fprintf(b, "%s=%s\n", regString(s.Name), regValue(s, value))
	}
	b.WriteString("\n")
	text := strings.ReplaceAll(b.String(), "\n", "\r\n")
	if old {
		return ansi(text)
	}
	out := []byte{0xff, 0xfe}
	for _, unit := range utf16.Encode([]rune(text)) {
		out = append(out, byte(unit), byte(unit>>8))
	}
	return out
}

// byKey lists the settings with those of one key together, keys in order of appearance.
func (p *Plan) byKey() []Setting {
	var keys []string
	groups := map[string][]Setting{}
	for _, s := range p.Settings {
		if groups[s.Where] == nil {
			keys = append(keys, s.Where)
		}
		groups[s.Where] = append(groups[s.Where], s)
	}
	var all []Setting
	for _, key := range keys {
		all = append(all, groups[key]...)
	}
	return all
}

// RegistryText is a setting's value as a .reg file writes it: dword:0000ffff or "text".
func RegistryText(s Setting) string { return regValue(s, s.Value) }

// regValue writes a value by its type; the empty one deletes.
func regValue(s Setting, value string) string {
	if value == "" || value == "unset" {
		return "-"
	}
	if strings.HasPrefix(s.Type, "dword") {
		if n, err := strconv.ParseUint(value, 0, 32); err == nil {
			return fmt.Sprintf("dword:%08x", n)
		}
	}
	return regString(value)
}

func regString(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// ansi keeps what every Windows code page has.
func ansi(text string) []byte {
	out := make([]byte, 0, len(text))
	for _, r := range strings.ReplaceAll(text, "µ", "u") {
		if r > 126 {
			r = '?'
		}
		out = append(out, byte(r))
	}
	return out
}
