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
		value := s.Value
		if undo {
			value = p.old(s)
		}
		b.WriteString(netshCommand(s, strings.ToLower(value)) + "\n")
	}
	b.WriteString("rem the present values, in the system's language\nnetsh int tcp show global\n")
	return []byte(strings.ReplaceAll(b.String(), "\n", "\r\n"))
}

// netshCommand returns the command that sets a host's value.
func netshCommand(s Setting, value string) string {
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

// script writes the PowerShell text of a plan, or its undo.
type script struct {
	strings.Builder
	plan     *Plan
	target   Target
	template string
	undo     bool
}

// powershell is a script for the NetTCPIP cmdlets of Windows 8, Server 2012 and later. It saves the present values for
// its undo, stops where a group policy sets the level, and reads every value back.
func (p *Plan) powershell(undo bool) []byte {
	target, _ := ParseTarget(p.Target)
	b := &script{plan: p, target: target, template: "Internet", undo: undo}
	if p.Route.Prefix != "" {
		b.template = target.customTemplate()
	}
	b.WriteString("#Requires -RunAsAdministrator\n" + p.headline("#", undo) + p.nothing("#"))
	b.WriteString("$ErrorActionPreference = 'Stop'\n")
	if len(p.Settings) > 0 {
		b.saved()
	}
	for _, s := range p.Settings {
		b.WriteString("\n" + roleComment("#", s))
		b.setting(s)
	}
	if p.Route.Prefix != "" {
		b.filter()
	}
	if undo && len(p.Settings) > 0 {
		b.WriteString("\nRemove-Item $saved -ErrorAction SilentlyContinue\n")
	}
	b.WriteString("\nGet-NetTCPSetting | Format-Table SettingName, AutoTuningLevelLocal, AutoTuningLevelEffective, " +
		"CongestionProvider\n")
	if !catalog.AtLeast(target.Version, "6.3") {
		b.WriteString("netsh int tcp show heuristics\n")
	}
	return []byte(strings.ReplaceAll(b.String(), "\n", "\r\n"))
}

// saved writes the present values to a file, or for the undo reads it.
func (b *script) saved() {
	name := "fullpipe-before"
	if prefix := b.plan.Route.Prefix; prefix != "" {
		name += "-" + strings.NewReplacer("/", "-", ":", "-").Replace(prefix)
	}
	path := fmt.Sprintf("$saved = Join-Path $env:ProgramData '%s.xml'\n", name)
	if b.undo {
		b.WriteString("\n# the values that the change saved; without its file, these\n$before = @{\n")
		for _, s := range b.plan.Settings {
			fmt.Fprintf(b, "    '%s' = '%s'\n", s.Name, b.plan.old(s))
		}
		b.WriteString("}\n" + path + "if (Test-Path $saved) { $before = Import-Clixml $saved }\n")
		return
	}
	b.WriteString("\n# the present values, for the undo script; an earlier file stays\n" + path)
	fmt.Fprintf(b, "if (-not (Test-Path $saved)) {\n    $setting = Get-NetTCPSetting -SettingName %s\n    @{\n",
		b.template)
	for _, s := range b.plan.Settings {
		present := fmt.Sprintf(`"$($setting.%s)"`, property(s))
		if s.Name == "winsock autotuning" {
			present = `$(if ((Get-ItemProperty 'HKLM:\SYSTEM\CurrentControlSet\Services\AFD\Parameters').` +
				`DynamicSendBufferDisable) { 'off' } else { 'on' })`
		}
		fmt.Fprintf(b, "        '%s' = %s\n", s.Name, present)
	}
	b.WriteString("    } | Export-Clixml $saved\n}\n")
}

// property returns the name of a setting in Set-NetTCPSetting and Get-NetTCPSetting.
func property(s Setting) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(s.Where, "Set-NetTCPSetting -"), ";")
	return name
}

// setting writes the commands for one setting.
func (b *script) setting(s Setting) {
	value := s.Value
	quoted := "'" + value + "'"
	byNetsh := strings.ToLower(value)
	if b.undo {
		value = fmt.Sprintf("$before['%s']", s.Name)
		quoted = value
		byNetsh = fmt.Sprintf(`"$(%s)"`, value)
	}
	shown := value
	if b.undo {
		shown = "$(" + value + ")" // within a text
	}
	hostByNetsh := b.target.netshOnly() && b.plan.Route.Prefix == ""
	if s.Name == "winsock autotuning" || hostByNetsh && s.Name == "ScalingHeuristics" {
		fmt.Fprintln(b, netshCommand(s, byNetsh)+failed)
		return
	}
	if s.Name == "AutoTuningLevelLocal" {
		fmt.Fprintf(b, `$setting = Get-NetTCPSetting -SettingName %s
if ("$($setting.AutoTuningLevelEffective)" -eq 'GroupPolicy') {
    throw "a group policy sets the autotuning level to $($setting.AutoTuningLevelGroupPolicy): change the policy"
}
`, b.template)
	}
	name := property(s)
	set := fmt.Sprintf("Set-NetTCPSetting -SettingName %s -%s %s", b.template, name, value)
	switch {
	case hostByNetsh:
		fmt.Fprintf(b, "# %s: netsh sets the host's level\n%s\n", b.target.templates, netshCommand(s, byNetsh)+failed)
	case b.target.templates == allTemplates || b.plan.Route.Prefix != "":
		fmt.Fprintln(b, set)
	default:
		fmt.Fprintf(b, "# %s\ntry { %s } catch { %s }\n", b.target.templates, set, netshCommand(s, byNetsh))
	}
	fmt.Fprintf(b, `$now = "$((Get-NetTCPSetting -SettingName %s).%s)"
if ($now -ne %s) { throw "%s is $now, not %s: this system refused the change" }
`, b.template, name, quoted, s.Name, shown)
}

// filter assigns the destination to the template, or takes it back.
func (b *script) filter() {
	b.WriteString("\n# the template acts only through a filter\n")
	if b.undo {
		fmt.Fprintf(b, "Remove-NetTransportFilter -SettingName %s -DestinationPrefix %s -Confirm:$false\n", b.template,
			b.plan.Route.Prefix)
		return
	}
	fmt.Fprintf(b, "New-NetTransportFilter -SettingName %s -DestinationPrefix %s\n", b.template, b.plan.Route.Prefix)
}
