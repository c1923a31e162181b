package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// cmdletStore is the store of the settings of Windows' NetTCPIP cmdlets. Names are TEMPLATE/PARAMETER, such as
// Internet/AutoTuningLevelLocal. It follows the cmdlets' documentation and is tested with output in that format; it was
// never run on Windows.
type cmdletStore struct {
	// run executes a PowerShell script and returns its standard output.
	run func(script string) ([]byte, error)
}

// cmdletProperties are the parameters of Set-NetTCPSetting by the catalog's names.
var cmdletProperties = map[string]string{
	"AutoTuningLevelLocal": "AutoTuningLevelLocal", "ScalingHeuristics": "ScalingHeuristics",
	"CongestionProvider": "CongestionProvider", "InitialCongestionWindow": "InitialCongestionWindowMss",
	"InitialRto": "InitialRtoMs", "MinRto": "MinRtoMs", "DelayedAckTimeout": "DelayedAckTimeoutMs",
	"Timestamps": "Timestamps", "EcnCapability": "EcnCapability",
}

// scriptWord matches a text that can be part of a PowerShell script without quotes.
var scriptWord = regexp.MustCompile(`^[A-Za-z0-9]{1,40}$`)

func cmdletName(name string) (template, property string, err error) {
	template, parameter, _ := strings.Cut(name, "/")
	property = cmdletProperties[parameter]
	if !scriptWord.MatchString(template) || property == "" {
		return "", "", fmt.Errorf("%q is not a parameter of Set-NetTCPSetting (TEMPLATE/PARAMETER)", name)
	}
	return template, property, nil
}

func (cmdletStore) normal(value string) string { return value }

func (s cmdletStore) read(name string) (*string, error) {
	template, property, err := cmdletName(name)
	if err != nil {
		return nil, err
	}
	values, err := s.template(template, property)
	if err != nil {
		return nil, err
	}
	value, ok := values[property]
	if !ok || value == "" {
		return nil, fmt.Errorf("Get-NetTCPSetting has no %s on this system", property)
	}
	return &value, nil
}

// template reads one property, and the source of the autotuning level. It casts enumerations to strings: their numbers
// differ between versions.
func (s cmdletStore) template(template, property string) (map[string]string, error) {
	out, err := s.run(fmt.Sprintf(`$ErrorActionPreference = 'Stop'
$s = Get-NetTCPSetting -SettingName %s
ConvertTo-Json -Compress @{ %s = "$($s.%[2]s)"; AutoTuningLevelEffective = "$($s.AutoTuningLevelEffective)"; AutoTuningLevelGroupPolicy = "$($s.AutoTuningLevelGroupPolicy)" }
`, template, property))
	if err != nil {
		return nil, fmt.Errorf("Get-NetTCPSetting -SettingName %s: %w", template, err)
	}
	values := map[string]string{}
	if err := json.Unmarshal(trimMark(out), &values); err != nil {
		return nil, fmt.Errorf("Get-NetTCPSetting -SettingName %s printed %.80q: %w", template, out, err)
	}
	return values, nil
}

func trimMark(text []byte) []byte { return []byte(strings.TrimPrefix(string(text), "\ufeff")) }

// ErrPolicy reports that a group policy sets the value, so that a local setting has no effect.
var ErrPolicy = errors.New("a group policy sets it: a local setting does nothing")

func (s cmdletStore) write(name string, value *string) error {
	template, property, err := cmdletName(name)
	if err != nil {
		return err
	}
	if value == nil {
		return fmt.Errorf("%s always has a value", name)
	}
	if !scriptWord.MatchString(*value) {
		return fmt.Errorf("%s: %.60q is not a value", name, *value)
	}
	if property == "AutoTuningLevelLocal" {
		values, err := s.template(template, property)
		if err != nil {
			return err
		}
		if strings.EqualFold(values["AutoTuningLevelEffective"], "GroupPolicy") {
			return fmt.Errorf("AutoTuningLevelGroupPolicy is %s: %w", values["AutoTuningLevelGroupPolicy"], ErrPolicy)
		}
	}
	set := fmt.Sprintf("Set-NetTCPSetting -SettingName %s -%s %s", template, property, *value)
	script := "$ErrorActionPreference = 'Stop'\n" + set + "\n"
	if other := netshGlobal(property, *value); other != "" && template == "Internet" {
		// Server 2012 sets only the Custom templates this way, and Windows 10 refuses most: netsh sets the host's level.
		script = fmt.Sprintf("$ErrorActionPreference = 'Stop'\ntry { %s } catch { %s; if ($LASTEXITCODE) { throw 'netsh "+
			"failed' } }\n", set, other)
	}
	if _, err := s.run(script); err != nil {
		return fmt.Errorf("%s: %w", set, err)
	}
	return nil
}

// netshGlobal returns the netsh command for a property, or "".
func netshGlobal(property, value string) string {
	switch property {
	case "AutoTuningLevelLocal":
		return "netsh int tcp set global autotuninglevel=" + strings.ToLower(value)
	case "ScalingHeuristics":
		return "netsh int tcp set heuristics " + strings.ToLower(value)
	}
	return ""
}
