package plan

import (
	"fmt"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
)

// netsh is a batch of netsh commands: Vista and later.
func (p *Plan) netsh(undo bool) []byte {
	b := &strings.Builder{}
	b.WriteString(p.headline("rem", undo) + "rem run as administrator; acts on new connections\n" + p.nothing("rem"))
	for _, s := range p.Settings {
		b.WriteString(roleComment("rem", s))
		b.WriteString(p.netshCommand(s, undo) + "\n")
	}
	b.WriteString("rem the present values, in the system's language\nnetsh int tcp show global\n")
	return []byte(strings.ReplaceAll(b.String(), "\n", "\r\n"))
}

func (p *Plan) netshCommand(s Setting, undo bool) string {
	value := s.Value
	if undo {
		value = p.old(s)
	}
	value = strings.ToLower(value)
	switch s.Name {
	case "AutoTuningLevelLocal":
		return "netsh int tcp set global autotuninglevel=" + value
	case "ScalingHeuristics":
		return "netsh int tcp set heuristics " + value
	case "winsock autotuning":
		return "netsh winsock set autotuning " + value
	}
	panic("plan: netsh has no command for " + s.Name)
}

// failed ends a script where a program other than a cmdlet failed.
const failed = "\nif ($LASTEXITCODE) { throw 'netsh failed' }"

// powershell is a script for the NetTCPIP cmdlets of Windows 8, Server 2012 and later.
// It stops where a group policy sets the level, and reads every value back.
func (p *Plan) powershell(undo bool) []byte {
	target, _ := ParseTarget(p.Target)
	b := &strings.Builder{}
	b.WriteString("#Requires -RunAsAdministrator\n" + p.headline("#", undo) + p.nothing("#"))
	b.WriteString("$ErrorActionPreference = 'Stop'\n")
	template := "Internet"
	if p.Route.Prefix != "" {
		template = target.customTemplate()
	}
	byNetsh := target.netshOnly() && p.Route.Prefix == ""
	for _, s := range p.Settings {
		b.WriteString("\n" + roleComment("#", s))
		value := s.Value
		if undo {
			value = p.old(s)
		}
		if s.Name == "winsock autotuning" || byNetsh && s.Name == "ScalingHeuristics" {
			fmt.Fprintln(b, p.netshCommand(s, undo)+failed)
			continue
		}
		if s.Name == "AutoTuningLevelLocal" {
			fmt.Fprintf(b, `$setting = Get-NetTCPSetting -SettingName %s
if ("$($setting.AutoTuningLevelEffective)" -eq 'GroupPolicy') {
    throw "a group policy sets the autotuning level to $($setting.AutoTuningLevelGroupPolicy): change the policy"
}
`, template)
		}
		set := fmt.Sprintf("Set-NetTCPSetting -SettingName %s -%s %s", template, s.Name, value)
		switch {
		case byNetsh:
			fmt.Fprintf(b, "# %s: netsh sets the host's level\n%s\n", target.templates, p.netshCommand(s, undo)+failed)
		case target.templates == allTemplates || p.Route.Prefix != "":
			fmt.Fprintln(b, set)
		default:
			fmt.Fprintf(b, "# %s\ntry { %s } catch { %s }\n", target.templates, set, p.netshCommand(s, undo))
		}
		fmt.Fprintf(b, `$now = "$((Get-NetTCPSetting -SettingName %s).%s)"
if ($now -ne '%s') { throw "%s is $now, not %s: this system refused the change" }
`, template, s.Name, value, s.Name, value)
	}
	if p.Route.Prefix != "" {
		b.WriteString("\n# the template acts only through a filter\n")
		if undo {
			fmt.Fprintf(b, "Remove-NetTransportFilter -SettingName %s -DestinationPrefix %s -Confirm:$false\n", template,
				p.Route.Prefix)
		} else {
			fmt.Fprintf(b, "New-NetTransportFilter -SettingName %s -DestinationPrefix %s\n", template, p.Route.Prefix)
		}
	}
	b.WriteString("\nGet-NetTCPSetting | Format-Table SettingName, AutoTuningLevelLocal, AutoTuningLevelEffective, " +
		"CongestionProvider\n")
	if !catalog.AtLeast(target.Version, "6.3") {
		b.WriteString("netsh int tcp show heuristics\n")
	}
	return []byte(strings.ReplaceAll(b.String(), "\n", "\r\n"))
}
