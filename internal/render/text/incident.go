package text

import (
	"fmt"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/incident"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// maxIncidentPaths is how many paths of an incident its text names.
const maxIncidentPaths = 5

// IncidentHeadline says what is wrong where, in one line. names are hosts' names by ID.
func IncidentHeadline(i *incident.Incident, names map[string]string) string {
	var parts []string
	for _, s := range i.Symptoms {
		parts = append(parts, symptomText(i, s))
	}
	line := incidentPlace(i, names) + ": " + strings.Join(parts, "; ")
	if !i.Confirmed {
		line += " (not confirmed: neighbouring paths could not be tested)"
	}
	return line
}

// incidentPlace names the paths or hosts of an incident by what they share.
func incidentPlace(i *incident.Incident, names map[string]string) string {
	name := hostName(names, i.Cause.ID)
	count := fmt.Sprintf("%d of %d paths", i.Affected, i.Of)
	isAway := len(i.Symptoms) > 0 && i.Symptoms[0] == incident.Away
	switch i.Cause.Kind {
	case incident.OnePath:
		return pathText(i, names)
	case incident.AllHosts:
		if isAway {
			return fmt.Sprintf("%d of %d hosts", i.Affected, i.Of)
		}
		return count + " of the fleet"
	case incident.OneSite:
		if isAway {
			return fmt.Sprintf("%d of %d hosts of site %s", i.Affected, i.Of, name)
		}
	case incident.OneHost:
		if isAway {
			return "host " + name
		}
	}
	place := map[incident.Kind]string{incident.HostReceives: " into host ", incident.HostSends: " from host ",
		incident.OneHost: " of host ", incident.SiteReceives: " into site ", incident.SiteSends: " from site ",
		incident.OneSite: " of site ", incident.OneLink: " through link "}[i.Cause.Kind]
	return count + place + name
}

func hostName(names map[string]string, id string) string {
	if name := names[id]; name != "" {
		return name
	}
	return id
}

// pathText names the one direction of a path, or both.
func pathText(i *incident.Incident, names map[string]string) string {
	a, b, _ := strings.Cut(i.Cause.ID, " ")
	arrow := " ↔ "
	if len(i.Paths) == 1 {
		a = i.Paths[0].From
		b = i.Paths[0].To
		arrow = " → "
	}
	return hostName(names, a) + arrow + hostName(names, b)
}

func symptomText(i *incident.Incident, s incident.Symptom) string {
	switch s {
	case incident.Away:
		return "away"
	case incident.Unreachable:
		return "no connection"
	case incident.Slow:
		return "goodput below the usual range"
	case incident.Delayed:
		return "round trip above the usual range"
	}
	if i.Window > 0 {
		return fmt.Sprintf("limited by %s, %s", i.Limiter, units.Size(i.Window))
	}
	return "limited by " + i.Limiter
}

// IncidentNotice describes what happened to an incident, with its first paths.
func IncidentNotice(n *incident.Notice) string {
	i := &n.Incident
	var b strings.Builder
	switch n.Change {
	case incident.Resolved:
		fmt.Fprintf(&b, "resolved after %s: ", units.Time(i.ResolvedAt.Sub(i.OpenedAt).Round(time.Minute)))
	default:
		b.WriteString(string(n.Change) + ": ")
	}
	return b.String() + IncidentText(i, n.Names)
}

// IncidentText describes an incident with its first paths.
func IncidentText(i *incident.Incident, names map[string]string) string {
	var b strings.Builder
	b.WriteString(IncidentHeadline(i, names) + ", since " + i.SinceAt.UTC().Format("2006-01-02 15:04 UTC") + "\n")
	for k, p := range i.Paths {
		if k == maxIncidentPaths {
			fmt.Fprintf(&b, "  and %d more\n", len(i.Paths)-k)
			break
		}
		b.WriteString("  " + IncidentPath(&p, names) + "\n")
	}
	return b.String()
}

// IncidentPath describes a direction of an incident with its figures.
func IncidentPath(p *incident.Path, names map[string]string) string {
	line := hostName(names, p.From) + " → " + hostName(names, p.To)
	if p.GoodputBps > 0 {
		line += ": " + units.Rate(p.GoodputBps).String()
		if p.UsualBps > 0 {
			line += ", usual " + units.Rate(p.UsualBps).String()
		}
		if p.RTTMinS > 0 && p.UsualRTTS > 0 {
			line += fmt.Sprintf("; round trip %s, usual %s", SecondsText(p.RTTMinS), SecondsText(p.UsualRTTS))
		}
	}
	if p.Limiter != "" {
		line += "; limited by " + p.Limiter
	}
	return line
}
