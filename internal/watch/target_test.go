package watch

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// TestParseTarget_Names counts which names are looked up among the processes and which are asked of name servers.
func TestParseTarget_Names(t *testing.T) {
	for target, want := range map[string]string{
		"rsync":                               "name rsync",
		"snd.py":                              "name snd.py",
		"/opt/a/snd.py":                       "name snd.py",
		"rsync:22":                            "name rsync",
		"rsnyc":                               "unknown rsnyc",
		"send.py":                             "unknown send.py",
		"app.jar":                             "unknown app.jar",
		"x.service":                           "unknown x.service",
		"10.0.0.300":                          "unknown 10.0.0.300",
		"10.0.0.300:22":                       "unknown 10.0.0.300",
		"foo_bar.example":                     "unknown foo_bar.example",
		"a b.example":                         "unknown a b.example",
		"-x.example":                          "unknown -x.example",
		"a..b":                                "unknown a..b",
		".":                                   "unknown .",
		strings.Repeat("a.", 127) + "example": "unknown " + strings.Repeat("a.", 127) + "example",
		"example.org":                         "resolve example.org",
		"example.org:443":                     "resolve example.org",
		"allegro.pl":                          "resolve allegro.pl",
		"www.banco.com.py":                    "resolve www.banco.com.py",
		"nic.py.":                             "resolve nic.py.",
		"db1:5432":                            "resolve db1",
		"xn--bcher-kva.example":               "resolve xn--bcher-kva.example",
	} {
		resolved := ""
		m, err := ParseTarget(target, func(name string) bool { return name == "rsync" || name == "snd.py" },
			func(host string) ([]netip.Addr, error) {
				resolved = host
				return []netip.Addr{netip.MustParseAddr("192.0.2.7")}, nil
			})
		var unknown *UnknownTargetError
		got := ""
		switch {
		case errors.As(err, &unknown):
			got = "unknown " + unknown.Name
		case err != nil:
			got = err.Error()
		case m.Name != "":
			got = "name " + m.Name
		default:
			got = "resolve " + resolved
		}
		if got != want {
			t.Errorf("%q: %s, want %s", target, got, want)
		}
	}
}

// TestScriptOf reads the command lines of interpreters.
func TestScriptOf(t *testing.T) {
	for line, want := range map[string][2]string{
		"python3 snd.py": {"snd.py", "snd.py"}, "python3.12 -u /opt/snd.py 1": {"/opt/snd.py", "snd.py"},
		"python -m http.server": {"http.server", "http.server"}, "python3 -c x": {}, "python3": {}, "pythonic x": {},
		"perl -w -I lib send.pl": {"send.pl", "send.pl"}, "node --inspect srv.js": {"srv.js", "srv.js"},
		"node -e x y": {}, "java -jar /opt/app.jar": {"/opt/app.jar", "app.jar"},
		"java -Xmx1g -cp a:b org.apache.kafka.Kafka x": {"org.apache.kafka.Kafka", "Kafka"},
		"/bin/sh -e ./backup.sh":                       {"./backup.sh", "backup.sh"}, "sh -c rsync": {}, "rsync -a x": {},
		"bun run serve.ts": {"serve.ts", "serve.ts"}, "ruby -I": {}, "dotnet app.dll": {"app.dll", "app.dll"},
	} {
		written, short := scriptOf(strings.Fields(line))
		if got := [2]string{written, short}; got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
