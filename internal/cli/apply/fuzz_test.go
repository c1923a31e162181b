package apply

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/host"
)

// FuzzPlanFile checks that any plan changes only sysctls of the network, and that no value has more than one line.
func FuzzPlanFile(f *testing.F) {
	f.Add([]byte(`{"schema":"fullpipe/plan/v1","settings":[{"name":"net.ipv4.tcp_rmem","where":"/proc/sys/",` +
		`"type":"min default max","value":"4096 131072 25034752"}],"route":{"prefix":"192.0.2.0/24"}}`))
	f.Add([]byte(`{"schema":"fullpipe/tune/v1","far":{"address":"192.0.2.1"},"directions":[{"settings":[{"host":"near",` +
		`"name":"initcwnd","where":"of the route","type":"integer","value":"20"}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := parsePlan(text, "plan.json", true)
		if err != nil {
			return
		}
		changes, err := host.Changes(p.Settings, p.Route.Prefix)
		if err != nil {
			return
		}
		for _, c := range changes {
			if c.Kind == host.Sysctl && !strings.HasPrefix(c.Name, "net.") ||
				c.Value != nil && strings.ContainsAny(*c.Value, "\n\r\x00") {
				t.Errorf("%+v", c)
			}
		}
	})
}
