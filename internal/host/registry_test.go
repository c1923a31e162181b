package host

import (
	"bytes"
	"testing"
)

func TestParseRegistry(t *testing.T) {
	for text, want := range map[string]struct {
		kind uint32
		data string
	}{
		"dword:0000ffff":                 {regDword, "\xff\xff\x00\x00"},
		`"65535"`:                        {regSZ, "6\x005\x005\x003\x005\x00\x00\x00"},
		`"a\\b\"c"`:                      {regSZ, "a\x00\\\x00b\x00\"\x00c\x00\x00\x00"},
		`""`:                             {regSZ, "\x00\x00"},
		"hex:01,ff":                      {regBinary, "\x01\xff"},
		"hex:":                           {regBinary, ""},
		"hex(7):61,00,00,00":             {7, "a\x00\x00\x00"},
		"hex(1):61,00":                   {regSZ, "a\x00"}, // a string without the final 0
		"hex(4):01,02":                   {regDword, "\x01\x02"},
		"hex(b):01,00,00,00,00,00,00,00": {11, "\x01\x00\x00\x00\x00\x00\x00\x00"},
	} {
		kind, data, err := parseRegistry(text)
		if err != nil || kind != want.kind || string(data) != want.data {
			t.Errorf("%s: type %d, % x, %v", text, kind, data, err)
		}
		if again := registryText(kind, data); again != text {
			t.Errorf("%s is written back as %s", text, again)
		}
	}
	for _, text := range []string{"", "65535", "dword:", "dword:123456789", "dword:xyz", `"`, `"a"b"`, `"a\n"`, "hex",
		"hex(:01", "hex(7:01",
		"hex:1", "hex:01,", "hex:01 02", "-"} {
		if kind, data, err := parseRegistry(text); err == nil {
			t.Errorf("%q was read as type %d, % x", text, kind, data)
		}
	}
	if got := registryNormal("dword:FFFF"); got != "dword:0000ffff" {
		t.Errorf("normal form %s", got)
	}
}

func TestRegistryName_OnlyNetworkKeys(t *testing.T) {
	const tcpip = `HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`
	for name, want := range map[string]string{
		tcpip + `\TcpWindowSize`:                                           `SYSTEM\CurrentControlSet\Services\Tcpip\Parameters|TcpWindowSize`,
		tcpip + `\Interfaces\{id}\MTU`:                                     `SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\{id}|MTU`,
		`HKEY_LOCAL_MACHINE\System\CurrentControlSet\Services\VxD\MSTCP\D`: `System\CurrentControlSet\Services\VxD\MSTCP|D`,
		tcpip + `2\TcpWindowSize`:                                          "",
		tcpip:                                                              "",
		tcpip + `\`:                                                        "",
		`HKEY_LOCAL_MACHINE\SOFTWARE\Microsoft\Windows\CurrentVersion\Run\x`: "",
		`HKEY_CURRENT_USER\x\y`: "",
		"TcpWindowSize":         "",
	} {
		key, value, err := registryName(name)
		if got := key + "|" + value; (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%s: %s, %v; want %q", name, got, err, want)
		}
	}
}

func FuzzRegistry(f *testing.F) {
	for _, text := range []string{"dword:0000ffff", `"text"`, "hex(7):61,00", `"a\\b"`, "hex:"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, _, _ = registryName(text)
		kind, data, err := parseRegistry(text)
		if err != nil {
			return
		}
		again, same, err := parseRegistry(registryText(kind, data))
		if err != nil || again != kind || !bytes.Equal(same, data) {
			t.Errorf("%q: type %d, % x comes back as %d, % x, %v", text, kind, data, again, same, err)
		}
	})
}
