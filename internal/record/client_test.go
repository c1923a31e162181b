package record

import "testing"

func TestClient(t *testing.T) {
	for far, want := range map[string]string{
		"browser://192.0.2.7":              "192.0.2.7",
		"browser://::ffff:192.0.2.7":       "192.0.2.7",
		"browser://2001:db8:1:2:3:4:5:6":   "2001:db8:1:2::/64",
		"browser://2001:db8:1:2::9":        "2001:db8:1:2::/64",
		"browser://fe80::1%eth0":           "fe80::/64",
		"browser://":                       "unknown",
		"browser://far.example.net":        "unknown",
		"far.example.net":                  "",
		"ndt7://192.0.2.7":                 "",
		"":                                 "",
		"https://browser://192.0.2.7/file": "",
	} {
		if got := Client(far); got != want {
			t.Errorf("Client(%q) = %q, want %q", far, got, want)
		}
	}
}
