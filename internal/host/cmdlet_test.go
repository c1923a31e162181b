package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// recordedHost simulates PowerShell with recorded output of Get-NetTCPSetting from testdata.
type recordedHost struct {
	output  string   // JSON of Get-NetTCPSetting -SettingName Internet
	refuses bool     // Set-NetTCPSetting on Internet fails
	ignores bool     // Set-NetTCPSetting succeeds without an effect
	set     []string // commands that took effect
}

var (
	getCommand = regexp.MustCompile(`Get-NetTCPSetting -SettingName (\w+)`)
	setCommand = regexp.MustCompile(`Set-NetTCPSetting -SettingName \w+ -(\w+) (\w+)`)
	netsh      = regexp.MustCompile(`netsh int tcp set global autotuninglevel=(\w+)`)
)

func (h *recordedHost) run(script string) ([]byte, error) {
	if getCommand.MatchString(script) {
		return []byte(h.output), nil
	}
	set, other := setCommand.FindStringSubmatch(script), netsh.FindStringSubmatch(script)
	property, value := set[1], set[2]
	if h.refuses {
		if other == nil {
			return nil, errors.New("Set-NetTCPSetting : No matching MSFT_NetTCPSetting objects found")
		}
		h.set = append(h.set, other[0])
	} else {
		h.set = append(h.set, set[0])
	}
	if !h.ignores {
		was := regexp.MustCompile(fmt.Sprintf(`"%s":"\w+"`, property))
		h.output = was.ReplaceAllString(h.output, fmt.Sprintf("%q:%q", property, value))
	}
	return nil, nil
}

func recorded(t *testing.T, name string) *recordedHost {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("testdata", name)))(t)
	return &recordedHost{output: string(text)}
}

func TestCmdletStore_ApplyAndUndo(t *testing.T) {
	const name = "Internet/AutoTuningLevelLocal"
	for _, tt := range []struct {
		file             string
		refuses, ignores bool
		outcome          Outcome
		text             string // of the error
		set              []string
	}{
		{"server-2019.json", false, false, Changed, "",
			[]string{"Set-NetTCPSetting -SettingName Internet -AutoTuningLevelLocal Normal",
				"Set-NetTCPSetting -SettingName Internet -AutoTuningLevelLocal Restricted"}},
		{"server-2012.json", true, false, Changed, "", []string{"netsh int tcp set global autotuninglevel=normal",
			"netsh int tcp set global autotuninglevel=restricted"}},
		{"policy.json", false, false, Refused, "a group policy sets it", nil},
		{"server-2019.json", false, true, Clipped, "is Restricted, not Normal", []string{
			"Set-NetTCPSetting -SettingName Internet -AutoTuningLevelLocal Normal",
			"Set-NetTCPSetting -SettingName Internet -AutoTuningLevelLocal Restricted"}},
	} {
		h := recorded(t, tt.file)
		h.refuses, h.ignores = tt.refuses, tt.ignores
		before := h.output
		cfg := Config{StateDir: t.TempDir(), stores: map[Kind]store{NetTCP: cmdletStore{h.run}}}
		dids, err := Apply(context.Background(), cfg, []Change{Set(NetTCP, name, "Normal")})
		if len(dids) != 1 || dids[0].Outcome != tt.outcome || (err != nil) != (tt.text != "") || err != nil &&
			!strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %+v, %v", tt.file, dids, err)
			continue
		}
		if err == nil {
			if undone, err := Undo(context.Background(), cfg); err != nil || len(undone) != 1 || undone[0].Outcome != Restored {
				t.Errorf("%s: undo %+v, %v", tt.file, undone, err)
			}
		}
		if h.output != before {
			t.Errorf("%s: left as\n%s\nwas\n%s", tt.file, h.output, before)
		}
		if fmt.Sprint(h.set) != fmt.Sprint(tt.set) {
			t.Errorf("%s: commands\n%q, want\n%q", tt.file, h.set, tt.set)
		}
	}
}

func TestCmdletStore_RejectsOtherText(t *testing.T) {
	s := cmdletStore{func(script string) ([]byte, error) {
		t.Errorf("ran %s", script)
		return nil, nil
	}}
	evil, fine := "Normal; Remove-Item C:\\", "Normal"
	for _, name := range []string{"AutoTuningLevelLocal", "Internet/Nonsense", "Internet;x/AutoTuningLevelLocal",
		"/AutoTuningLevelLocal", ""} {
		if _, err := s.read(name); err == nil {
			t.Errorf("read %q", name)
		}
		if err := s.write(name, &fine); err == nil {
			t.Errorf("wrote %q", name)
		}
	}
	if s.write("Internet/MinRto", &evil) == nil || s.write("Internet/MinRto", nil) == nil {
		t.Error("an impossible value was written")
	}
}

func TestCmdletStore_RejectsOtherOutput(t *testing.T) {
	for _, output := range []string{"", "Get-NetTCPSetting : not recognized", "[1]", `{"AutoTuningLevelLocal":""}`} {
		s := cmdletStore{func(string) ([]byte, error) { return []byte(output), nil }}
		if v, err := s.read("Internet/AutoTuningLevelLocal"); err == nil {
			t.Errorf("%q was read as %q", output, *v)
		}
	}
}
