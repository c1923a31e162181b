package config

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

var flags = map[string][]string{"measure": {"time", "parallel"}, "tune": {"budget"}}

func TestParse(t *testing.T) {
	f := must.Get(Parse([]byte(`
[far.office]
peer = "fullpipe://server.example.net:5201"
key-file = "office.key"
[far.home]
peer = "ssh://me@home.example.net"
key-file = "~/keys/home"
ipv6 = true
[defaults]
time = "10s"
parallel = 4
[defaults.tune]
budget = "2m"
[history]
most = "64MiB"
runs-days = 90
most-results = 5000
client-results-a-day = 7
store = "postgres://u@h/d"
[recheck]
peers = ["office", "iperf3://far.example.net"]
`), "/etc/x", "/home/u", flags))(t)
	if got := f.Far["office"].KeyFile; got != "/etc/x/office.key" {
		t.Errorf("office: %s", got)
	}
	if got := f.Far["home"].KeyFile; got != "/home/u/keys/home" || !f.Far["home"].IPv6 {
		t.Errorf("home: %s", got)
	}
	for _, c := range []struct{ command, flag, want string }{{"measure", "time", "10s"}, {"measure", "parallel", "4"},
		{"tune", "budget", "2m"}, {"measure", "budget", ""}, {"tune", "tune", ""}} {
		if got, ok := f.Default(c.command, c.flag); got != c.want || ok != (c.want != "") {
			t.Errorf("%s --%s: %q, %v", c.command, c.flag, got, ok)
		}
	}
	if f.History.MostBytes != 64<<20 || f.History.RunsDays != 90 || f.History.MostResults != 5000 ||
		f.History.ClientResultsADay != 7 ||
		f.History.Store != "postgres://u@h/d" {
		t.Errorf("%+v", f.History)
	}
	if len(f.Recheck.Peers) != 2 || f.Recheck.Peers[0] != "office" {
		t.Errorf("%+v", f.Recheck)
	}
	if names := strings.Join(f.Names(), " "); names != "home office" {
		t.Error(names)
	}
}

func TestParseIsStrict(t *testing.T) {
	for text, want := range map[string]string{
		"[far.a]\npear = \"x\"":                     "line 2: there is no setting far.a.pear (peer?)",
		"[fare.a]":                                  "(far?)",
		"[far.a]\nbind = \"eth0\"":                  "peer is missing",
		"[far.a]\npeer = \"lab:wan-40ms\"":          "is a lab",
		"[far.\"a.b\"]\npeer = \"x\"":               "a name is letters",
		"[far.a]\npeer=\"x\"\nipv4=true\nipv6=true": "no address together",
		"[defaults]\ntimes = 3":                     "defaults.times: no flag that may have a default is called so (time?)",
		"[defaults.measures]\ntime = 3":             "no command with defaults is called so (measure?)",
		"[defaults.tune]\ntime = 3":                 "defaults.tune.time",
		"[defaults]\ntime = [1]":                    "a text, a number",
		"[history]\nmost = \"1kB\"":                 "too little",
		"[recheck]\npears = [\"a\"]":                "(peers?)",
		"[history]\nruns-days = -1":                 "runs-days",
		"[history]\nmost-results = -1":              "most-results",
		"[history]\nclient-results-a-day = -1":      "client-results-a-day",
		"[defaults":                                 "line 1: ",
		"[far.a]\npeer = 3":                         "line 2: ",
	} {
		if _, err := Parse([]byte(text), "/", "/", flags); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("[far.a]\npeer = \"x\"\n[defaults]\ntime = 3\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text, "/", "/", flags)
		if err != nil {
			return
		}
		for _, name := range c.Names() {
			if c.Far[name].Peer == "" {
				t.Errorf("%s has no peer", name)
			}
		}
		c.Default("measure", "time")
	})
}
