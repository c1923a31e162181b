package text

import (
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/tune"
)

// tuneSettingPlaces tell where each setting is made, VALUE being its value, and what documents it.
var tuneSettingPlaces = map[string]struct{ where, source string }{
	"TCP_CONGESTION":                  {"in the program, before connect() or listen()", "tcp(7)"},
	"congctl":                         {"of the route to the far host: ip route change … congctl VALUE", "ip-route(8)"},
	"net.ipv4.tcp_congestion_control": {"sysctl, every new connection of the host", "tcp(7)"},
	"connections at once": {"in the program; they also take that many shares from others on the link",
		"RFC 2914 section 5.1"},
	"SO_MAX_PACING_RATE": {"in the program, bytes a second", "socket(7)"},
	"TCP_MAXSEG":         {"in the program, before connect() or listen()", "tcp(7)"},
	"TCP_WINDOW_CLAMP":   {"in the program, on every connection", "tcp(7)"},
	"mtu":                {"of the route to the far host: ip route change … mtu", "ip-route(8)"},
	"advmss":             {"of the route to the sender: ip route change … advmss", "ip-route(8)"},
}

// TuneSetting returns a setting of a program, a route or a host for what tune chose beside the buffers.
func TuneSetting(role plan.Role, name, value string) plan.Setting {
	at := tuneSettingPlaces[name]
	s := plan.Setting{Role: role, Name: name, Value: value, Where: strings.ReplaceAll(at.where, "VALUE", value),
		Source: at.source, Confirmed: true}
	if name == "TCP_WINDOW_CLAMP" {
		s.Unit = "bytes"
	}
	return s
}

// MeasuredInTurn is the source of what tune found out by itself.
const MeasuredInTurn = "measured in turn with today's"

// TuneBudget returns the budget that would decide what was left open.
func TuneBudget(d *tune.Direction) plan.Setting {
	return plan.Setting{Role: plan.Sender, Name: "--budget", Value: tune.Shortest(d.Open.Budget),
		Where: "of fullpipe tune, which tells then whether " + TuneOpen(d) + " helps", Source: MeasuredInTurn}
}
