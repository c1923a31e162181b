package audit

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

const (
	savedTcpip = `Windows Registry Editor Version 5.00

[HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters]
"Hostname"="secret"
"TcpWindowSize"=dword:0000faf0
"Tcp1323Opts"=dword:00000000

[HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\{1B-2C}]
"MTU"=dword:00000578
"NTEContextList"=hex(7):30,00,00,00
`
	// German Windows 7: labels in its code page, values as everywhere.
	germanNetsh = "Der aktive Status wird abgefragt...\r\n\r\nGlobale TCP-Parameter\r\n" +
		"----------------------------------------------\r\n" +
		"Zustand der empfangsseitigen Skalierung : enabled\r\n" +
		"Chimney-Abladezustand                   : automatic\r\n" +
		"NetDMA-Status                           : enabled\r\n" +
		"Direkter Cachezugriff                   : disabled\r\n" +
		"Autom. Abstimmungsgrad Empfangsfenster  : highlyrestricted \r\n" +
		"Add-On \"\x9aberlastungssteuerungsanbieter\"  : none\r\n" +
		"ECN-Funktion                            : disabled\r\n" +
		"RFC 1323-Zeitstempel                    : disabled\r\n" +
		"** Die obige Einstellung ist das Ergebnis der Heuristik\r\n"
	japaneseNetsh = "TCP グローバル パラメーター\n----------\n受信側スケーリング状態 : enabled\n受信ウィンドウ自動チューニング レベル : disabled\n" +
		"アドオン輻輳制御プロバイダー : default\nECN 機能 : enabled\nRFC 1323 タイムスタンプ : allowed\n初期 RTO : 1000\n"
	netTCPSetting = `

SettingName                     : InternetCustom
MinRto(ms)                      : 300
AutoTuningLevelLocal            : Experimental

SettingName                     : Internet
InitialCongestionWindow(MSS)    : 4
CongestionProvider              : CTCP
AutoTuningLevelLocal            : Restricted
AutoTuningLevelEffective        : Local
ScalingHeuristics               : Disabled
`
	batch = "fullpipe-snapshot 1\r\nsystem windows-2000\r\nhost OLD7\r\ntext Microsoft Windows [Version 6.1.7601]\r\n" +
		"text HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters\r\n" +
		"text Tcp1323Opts    REG_DWORD    0x1\r\n" +
		"text HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\Tcpip\\Parameters\\Interfaces\\{9F}\r\n" +
		"text TcpAckFrequency    REG_DWORD    0x1\r\n" +
		"text HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\AFD\\Parameters\r\n" +
		"text DynamicSendBufferDisable    REG_DWORD    0x1\r\n" +
		"text ----------\r\ntext RSS : enabled\r\ntext Niveau : normal\r\ntext X : ctcp\r\ntext ECN : disabled\r\n" +
		"text RFC 1323 : disabled\r\n"
	saved98 = "REGEDIT4\r\n\r\n[HKEY_LOCAL_MACHINE\\System\\CurrentControlSet\\Services\\VxD\\MSTCP]\r\n" +
		"\"DefaultRcvWindow\"=\"131400\"\r\n\"HostName\"=\"secret\"\r\n\r\n" +
		"[HKEY_LOCAL_MACHINE\\System\\CurrentControlSet\\Services\\VxD\\MSTCP\\Parameters]\r\n" +
		"\"GlobalMaxTcpWindoSize\"=dword:00008000\r\n\r\n" +
		"[HKEY_LOCAL_MACHINE\\System\\CurrentControlSet\\Services\\Class\\NetTrans\\0002]\r\n\"MaxMTU\"=\"576\"\r\n"
	savedNT4 = "REGEDIT4\n\n[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\E100B1\\Parameters\\Tcpip]\n" +
		"\"MTU\"=dword:00000240\n\"TcpWindowSize\"=dword:00002238\n"
	frenchHeuristics = "Paramètres heuristiques de mise à l'échelle de fenêtre TCP\n----------\n" +
		"Heuristiques de mise à l'échelle de fenêtre : enabled\nSeuil de destination de qualification : 3\n" +
		"Type de profil inconnu : normal\n"
	batch2000 = "fullpipe-snapshot 1\r\nsystem windows-2000\r\nhost OLD\r\n" +
		"text Microsoft Windows 2000 [Version 5.00.2195]\r\n" +
		"text [HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\AFD\\Parameters]\r\n" +
		"text \"DefaultSendWindow\"=dword:00010000\r\n"
)

func TestParseSnapshot_WindowsTools(t *testing.T) {
	for name, c := range map[string]struct {
		text, system, version string
		values                map[string]string // "": not there
	}{
		"a saved .reg file": {savedTcpip, "windows-2000", "", map[string]string{"TcpWindowSize": "64240",
			"Tcp1323Opts": "0", "Interfaces/{1B-2C}/MTU": "1400", "Hostname": ""}},
		"a .reg file with names in small letters": {strings.ToLower(savedTcpip), "windows-2000", "", map[string]string{
			"TcpWindowSize": "64240", "Tcp1323Opts": "0", "Interfaces/{1b-2c}/MTU": "1400"}},
		"netsh in German": {germanNetsh, "windows", "", map[string]string{"AutoTuningLevelLocal": "HighlyRestricted",
			"Chimney": "automatic", "EcnCapability": "disabled", "ScalingHeuristics": "Enabled", "Timestamps": "disabled"}},
		"netsh in Japanese": {japaneseNetsh, "windows", "", map[string]string{"AutoTuningLevelLocal": "Disabled",
			"EcnCapability": "enabled", "Timestamps": "allowed", "ScalingHeuristics": ""}},
		"Get-NetTCPSetting": {netTCPSetting, "windows", "", map[string]string{"AutoTuningLevelLocal": "Restricted",
			"InternetCustom/AutoTuningLevelLocal": "Experimental", "InitialCongestionWindow": "4",
			"CongestionProvider": "CTCP"}},
		"Get-NetTCPSetting as a table": {"\nSettingName AutoTuningLevelLocal InitialRto(ms)\n----------- ---- ----\n" +
			"Automatic\nInternetCustom Normal 3000\nInternet HighlyRestricted 2500\n", "windows", "", map[string]string{
			"AutoTuningLevelLocal": "HighlyRestricted", "InitialRto": "2500",
			"InternetCustom/AutoTuningLevelLocal": "Normal", "Automatic/AutoTuningLevelLocal": ""}},
		"the batch collector on 7": {batch, "windows", "6.1.7601", map[string]string{"AutoTuningLevelLocal": "Normal",
			"Tcp1323Opts": "0x1", "winsock autotuning": "off", "Interfaces/{9F}/TcpAckFrequency": "0x1"}},
		"a saved .reg file of 98": {saved98, "windows-9x", "", map[string]string{"DefaultRcvWindow": "131400",
			"GlobalMaxTcpWindoSize": "32768", "Interfaces/0002/MaxMTU": "576", "HostName": ""}},
		"a saved .reg file of NT 4's card": {savedNT4, "windows-2000", "", map[string]string{
			"Interfaces/E100B1/MTU": "576", "Interfaces/E100B1/TcpWindowSize": "8760"}},
		"netsh's heuristics in French": {frenchHeuristics, "windows", "", map[string]string{"ScalingHeuristics": "enabled"}},
		"a template's list with settings that are not audited": {"SettingName : Internet\nAnother : Enabled\n" +
			"Ports : 49152\nAutoTuningLevelLocal : Normal\n", "windows", "", map[string]string{
			"AutoTuningLevelLocal": "Normal", "ScalingHeuristics": ""}},
		"the batch collector on 2000": {batch2000, "windows-2000", "5.0.2195", map[string]string{
			"DefaultSendWindow": "65536"}},
	} {
		s, err := ParseSnapshot([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s.System != c.system || s.Version != c.version {
			t.Errorf("%s: %s %q, want %s %q", name, s.System, s.Version, c.system, c.version)
		}
		for parameter, want := range c.values {
			if s.Values[parameter] != want {
				t.Errorf("%s: %s is %q, want %q", name, parameter, s.Values[parameter], want)
			}
		}
	}
	s := must.Get(ParseSnapshot([]byte(saved98)))(t)
	judged := Judge(s, Path{RateBps: 10e6, RTT: 80 * time.Millisecond})
	for _, want := range []struct {
		grade     Grade
		parameter string
		capBps    float64
	}{{Limits, "GlobalMaxTcpWindoSize", 22 * 1460 * 8 / 0.082432}, {Risk, "Tcp1323Opts", 0}, {Risk, "MaxMTU", 0}} {
		f := found(judged, want.parameter)
		if f.Grade != want.grade || math.Abs(f.CapBps-want.capBps) > 1 {
			t.Errorf("Windows 98: %s is %+v, want %s at %g bit/s", want.parameter, f, want.grade, want.capBps)
		}
	}
	// A file of one key says nothing of the other key's values.
	s, _ = ParseSnapshot([]byte(savedTcpip))
	for _, f := range Judge(s, wan) {
		if f.Parameter == "DefaultSendWindow" {
			t.Errorf("AFD's key is not in the file: %+v", f)
		}
	}
}

// TestCollectors_OldSystems checks that the scripts use nothing that their systems lack.
func TestCollectors_OldSystems(t *testing.T) {
	code := func(text, comment string) string {
		var kept []string
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(strings.TrimSpace(line), comment) {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "")
	}
	powershell := code(CollectPowerShell, "#")
	for _, later := range []string{"[ordered]", "ConvertTo-Json", "[pscustomobject]", "-notin", ".ForEach("} {
		if strings.Contains(strings.ToLower(powershell), strings.ToLower(later)) {
			t.Errorf("PowerShell 2.0 has no %s", later)
		}
	}
	batch := code(CollectBatch, "rem")
	for _, later := range []string{"powershell", "wmic", "timeout ", "choice ", "where "} {
		if strings.Contains(strings.ToLower(batch), later) {
			t.Errorf("Windows 2000 has no %s", later)
		}
	}
	if strings.Count(CollectBatch, "\n") != strings.Count(CollectBatch, "\r\n") {
		t.Error("a line of the batch file does not end in CRLF")
	}
}
