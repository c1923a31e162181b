package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
)

// tuneSettingPlaces has for each setting its scope, its place, with VALUE for its value, and its source.
var tuneSettingPlaces = map[string]struct {
	by            record.SettingBy
	where, source string
}{
	"TCP_CONGESTION": {record.ByProgram, "in the program, before connect() or listen()", "tcp(7)"},
	"congctl": {record.ByRoute, "of the route to the far host: ip route change … congctl VALUE",
		"ip-route(8)"},
	"net.ipv4.tcp_congestion_control": {record.ByHost, "sysctl, every new connection of the host", "tcp(7)"},
	"connections at once": {record.ByProgram, "in the program; they also take that many shares from others on the link",
		"RFC 2914 section 5.1"},
	"SO_MAX_PACING_RATE": {record.ByProgram, "in the program, bytes a second", "socket(7)"},
	"TCP_MAXSEG":         {record.ByProgram, "in the program, before connect() or listen()", "tcp(7)"},
	"TCP_WINDOW_CLAMP":   {record.ByProgram, "in the program, on every connection", "tcp(7)"},
	"mtu":                {record.ByRoute, "of the route to the far host: ip route change … mtu", "ip-route(8)"},
	"advmss":             {record.ByRoute, "of the route to the sender: ip route change … advmss", "ip-route(8)"},
	"net.core.wmem_max":  {record.ByProgram, "sysctl, at least; without it the system clips SO_SNDBUF", "socket(7)"},
	"net.core.rmem_max":  {record.ByProgram, "sysctl, at least; without it the system clips SO_RCVBUF", "socket(7)"},
}

// StreamsInstead is the place of the setting that uses several connections instead of a larger window.
const StreamsInstead = "in the program, instead of larger windows at either end; they also take that many shares " +
	"from others on the link"

// TuneSetting returns a setting of a program, a route or a host that tune chose in addition to the buffers, and its
// scope.
func TuneSetting(role plan.Role, name, value string) (plan.Setting, record.SettingBy) {
	at := tuneSettingPlaces[name]
	s := plan.Setting{Role: role, Name: name, Value: value, Where: strings.ReplaceAll(at.where, "VALUE", value),
		Source: at.source, Confirmed: true}
	if name == "TCP_WINDOW_CLAMP" {
		s.Unit = "bytes"
	}
	return s, at.by
}

// MeasuredInTurn is the source of tune's own findings.
const MeasuredInTurn = "measured in turn with today's"

// TuneBudget returns the budget that would decide the open question.
func TuneBudget(d *tune.Direction) plan.Setting {
	return plan.Setting{Role: plan.Sender, Name: "--budget", Value: tune.Shortest(d.Open.Budget),
		Where: "of fullpipe tune, to decide if " + TuneOpen(d) + " helps", Source: MeasuredInTurn}
}

// titled is a table with its heading.
type titled struct {
	title string
	table *table
}

// tuneSettings returns the settings for the chosen setup, host by host, with alternatives marked.
func tuneSettings(d *record.TuneDirection) (all []titled) {
	if d.Chosen == nil || d.Chosen.Automatic {
		return nil
	}
	for _, host := range []string{"near", "far"} {
		name := "this host"
		if host == "far" {
			name = "the far host"
		}
		role := "receiver"
		if (d.Direction == transfer.Up) == (host == "near") {
			role = "sender"
		}
		lines, system := settingLines(d, host, role)
		if len(lines) == 0 {
			continue
		}
		table := newTable()
		for i, line := range lines {
			table.row(line.prefix(lines[:i])+line.name+" = "+line.value, line.where)
		}
		all = append(all, titled{fmt.Sprintf("to set on %s (%s%s)", name, role, system), table})
	}
	return all
}

// settingLine is one setting of a host.
type settingLine struct {
	of                 advice.Action
	by                 record.SettingBy
	name, value, where string
}

// prefix marks a line as an alternative to the lines above it, or as a further setting of an alternative.
func (l *settingLine) prefix(above []settingLine) string {
	isOf := func(o settingLine) bool { return l.of != "" && o.of == l.of }
	first := slices.IndexFunc(above, isOf)
	switch {
	case first < 0 || above[first].by == l.by:
		return ""
	case slices.ContainsFunc(above, func(o settingLine) bool { return isOf(o) && o.by == l.by }):
		return "  with "
	}
	return "or "
}

// settingLines returns the settings of one end in the order of its document, and its system for the heading. The
// program's own buffer follows the host's settings for the window, which are its alternative.
func settingLines(d *record.TuneDirection, host, role string) (lines []settingLine, system string) {
	option := "SO_RCVBUF"
	buffer := d.Chosen.ReceiveBufferBytes
	if role == "sender" {
		option = "SO_SNDBUF"
		buffer = d.Chosen.SendBufferBytes
	}
	addBuffer := func() {
		if buffer > 0 {
			lines = append(lines, settingLine{advice.LargerWindows, record.ByProgram, option, strconv.Itoa(buffer),
				"in a program that sets its own, before connect() or listen()"})
		}
		buffer = 0
	}
	for _, s := range d.Settings {
		if s.Host != host {
			continue
		}
		system = ", " + s.Target
		ofWindow := s.Of == advice.LargerWindows || s.Of == advice.WindowScaling
		if s.Of != "" && !(ofWindow && s.By == record.ByHost) {
			addBuffer()
		}
		where := s.Where
		if s.Restart {
			where += ", after a restart"
		}
		lines = append(lines, settingLine{s.Of, s.By, s.Name, s.Value, where})
	}
	addBuffer()
	return lines, system
}
