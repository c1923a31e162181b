package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
)

// registryDanger is what Microsoft's own articles say of the registry, in short.
const registryDanger = "a wrong registry can keep the system from starting"

// exports are the commands that save every key which the plan changes.
func (p *Plan) exports(t Target) (commands []string) {
	var keys []string
	for _, s := range p.Settings {
		if strings.HasPrefix(s.Where, "HKEY_") && !slices.Contains(keys, s.Where) {
			keys = append(keys, s.Where)
		}
	}
	for i, key := range keys {
		file := fmt.Sprintf("before%d.reg", i+1)
		if t.Family == catalog.Windows9x || !catalog.AtLeast(t.Version, "5.1") { // reg came with XP
			commands = append(commands, fmt.Sprintf(`regedit /e %s "%s"`, file, key))
		} else {
			commands = append(commands, fmt.Sprintf(`reg export "%s" %s`, key, file))
		}
	}
	return commands
}

// registryNotes say what to do before a registry is changed.
func (p *Plan) registryNotes(t Target) {
	if commands := p.exports(t); len(commands) > 0 {
		p.note(SaveRegistryKeys, registryDanger, strings.Join(commands, "; "))
	}
}

// steps is the change by hand, in the registry's editor.
func (p *Plan) steps(undo bool) []byte {
	target, _ := ParseTarget(p.Target)
	b := &strings.Builder{}
	n := 0
	step := func(format string, args ...any) {
		n++
		fmt.Fprintf(b, "%d. %s\n", n, fmt.Sprintf(format, args...))
	}
	b.WriteString(p.headline("#", undo) + p.nothing("#"))
	if len(p.Settings) == 0 {
		return []byte(b.String())
	}
	fmt.Fprintf(b, "# %s\n", registryDanger)
	step("Start regedit: Start, Run, regedit.")
	if !undo {
		step("Save what is there: %s", strings.Join(p.exports(target), "; "))
	}
	key := ""
	for _, s := range p.byKey() {
		if s.Where != key {
			key = s.Where
			step("Open %s; make it if it is not there.", key)
		}
		kind := "a string value"
		value := s.Value
		if strings.HasPrefix(s.Type, "dword") {
			kind = "a DWORD value"
			value = s.Value + " (decimal)"
		}
		switch old := s.Before; {
		case !undo:
			step("Make %s of the name %s, or open it, and give it %s.", kind, s.Name, value)
		case old == "" || old == "unset":
			step("Delete %s.", s.Name)
		default:
			step("Open %s and give it %s again.", s.Name, old)
		}
	}
	step("Restart the computer.")
	return []byte(b.String())
}

// shell is commands for AIX and Solaris, which keep what they set over a restart.
func (p *Plan) shell(undo bool) []byte {
	target, _ := ParseTarget(p.Target)
	b := &strings.Builder{}
	b.WriteString("#!/bin/sh\n" + p.headline("#", undo) + p.nothing("#"))
	settings := slices.Clone(p.Settings)
	if undo { // a ceiling is lowered after what is below it
		slices.Reverse(settings)
	}
	for _, s := range settings {
		value := s.Value
		if undo {
			value = p.old(s)
		}
		command := fmt.Sprintf("ipadm set-prop -p %s=%s tcp", s.Name, value)
		if target.Family == catalog.AIX {
			command = fmt.Sprintf("no -p -o %s=%s", s.Name, value)
		}
		b.WriteString(roleComment("#", s) + command + "\n")
	}
	return []byte(b.String())
}
