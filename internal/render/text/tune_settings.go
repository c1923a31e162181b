package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
)

// tuneSettingPlaces has for each setting its place, with VALUE for its value, and its source.
var tuneSettingPlaces = map[string]struct{ where, source string }{
	"SO_SNDBUF":      {"in the program, before connect() or listen()", "socket(7)"},
	"SO_RCVBUF":      {"in the program, before connect() or listen()", "socket(7)"},
	"TCP_CONGESTION": {"in the program, before connect() or listen()", "tcp(7)"},
	"congctl": {"of the route to the far host: ip route change … congctl VALUE",
		"ip-route(8)"},
	"net.ipv4.tcp_congestion_control": {"sysctl, every new connection of the host", "tcp(7)"},
	"connections at once": {"in the program; they also take that many shares from others on the link",
		"RFC 2914 section 5.1"},
	"SO_MAX_PACING_RATE": {"in the program, bytes a second", "socket(7)"},
	"TCP_MAXSEG":         {"in the program, before connect() or listen()", "tcp(7)"},
	"TCP_WINDOW_CLAMP":   {"in the program, on every connection", "tcp(7)"},
	"mtu":                {"of the route to the far host: ip route change … mtu", "ip-route(8)"},
	"advmss":             {"of the route to the sender: ip route change … advmss", "ip-route(8)"},
	"net.core.wmem_max":  {"sysctl, at least; without it the system clips SO_SNDBUF", "socket(7)"},
	"net.core.rmem_max":  {"sysctl, at least; without it the system clips SO_RCVBUF", "socket(7)"},
}

// TuneSetting returns a setting of a program, a route or a host that tune chose.
func TuneSetting(role plan.Role, name, value string) plan.Setting {
	at := tuneSettingPlaces[name]
	s := plan.Setting{Role: role, Name: name, Value: value, Where: strings.ReplaceAll(at.where, "VALUE", value),
		Source: at.source, Confirmed: true}
	if slices.Contains([]string{"TCP_WINDOW_CLAMP", "SO_SNDBUF", "SO_RCVBUF"}, name) {
		s.Unit = "bytes"
	}
	return s
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

// write prints the table. If a line would be too long, each host has a line of its own above its settings.
func (t *titled) write(w io.Writer) {
	const indentation = "    "
	if t.table.width()+len(indentation) <= render.Columns(w) {
		t.table.write(w, indentation)
		return
	}
	settings := newTable()
	for i, row := range t.table.rows {
		if row[0] != "" && i > 0 {
			settings.write(w, indentation+"  ")
			settings = newTable()
		}
		if row[0] != "" {
			fmt.Fprintln(w, indentation+row[0])
		}
		settings.row(row[1:]...)
	}
	settings.write(w, indentation+"  ")
}

// recipeTitles has the heading of a recipe by its scope.
var recipeTitles = map[record.SettingBy]string{
	record.ByProgram: "in the programs",
	record.ByRoute:   "on the route between the hosts",
	record.ByHost:    "on the hosts, for every new connection",
	record.ByStreams: "several connections in place of larger windows",
}

// tuneSettings returns the recipes of the chosen setup; none where a change of the hosts was kept
// that gives as much.
func tuneSettings(d *record.TuneDirection) (all []titled) {
	if d.Chosen == nil || d.Chosen.Automatic || tuneIsInForce(d) {
		return nil
	}
	recipe := -1
	host := ""
	for _, s := range d.Settings {
		if s.Recipe != recipe {
			title := "to set, as it was measured"
			if s.Recipe > 1 {
				title = "or instead"
			}
			if scope := recipeTitles[s.By]; scope != "" {
				title += ": " + scope
			}
			all = append(all, titled{title, newTable()})
			host = ""
		}
		label := ""
		if s.Host != host {
			label = tuneHost(d.Direction, &s)
		}
		recipe = s.Recipe
		host = s.Host
		where := strings.ReplaceAll(s.Where, "HKEY_LOCAL_MACHINE", "HKLM") // as reg.exe has it
		if s.Restart {
			where += ", after a restart"
		}
		all[len(all)-1].table.row(label, s.Name+" = "+s.Value, where)
	}
	return all
}

// tuneHost names a setting's host with its role and its system.
func tuneHost(way transfer.Direction, s *record.TuneSetting) string {
	name := "this host"
	if s.Host == "far" {
		name = "the far host"
	}
	role := string(plan.Receiver)
	if (way == transfer.Up) == (s.Host == "near") {
		role = string(plan.Sender)
	}
	if s.Target == "" {
		return name + inParentheses([]string{role})
	}
	return name + inParentheses([]string{role, s.Target})
}

// tuneIsInForce reports that a change of the hosts was kept which gives what the chosen setup does,
// or a tenth less.
func tuneIsInForce(d *record.TuneDirection) bool {
	a := d.Applied
	return a != nil && a.Kept && (d.After == nil || a.After != nil && a.After.MedianBps >= 0.9*d.After.MedianBps)
}
