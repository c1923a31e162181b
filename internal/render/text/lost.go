package text

import (
	"fmt"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// placeNames has the words for the places of loss of a host.
var placeNames = map[string]string{
	"firewall": "firewall", "filter": "packet filter", "queue": "queue", "device": "network device",
	"backlog": "receive backlog", "socket": "socket buffer", "route": "routing", "packet-size": "packet size limit",
	"invalid": "packet checks", "other": "kernel",
}

// lostRows returns the sentences about places of loss, one for each. retransmitted is the sender's
// own count, nil: unknown. Under a flood of drops fewer retransmissions are seen than it counts.
func lostRows(all []record.LostAt, retransmitted *int64) (rows []string) {
	total := int64(0)
	for i := range all {
		total += all[i].Segments
	}
	if retransmitted != nil {
		total = max(total, *retransmitted)
	}
	for i := range all {
		rows = append(rows, lostRow(&all[i], total, len(all) == 1))
	}
	return rows
}

// lostClause makes a sentence of a row without its title.
func lostClause(row string) string {
	if strings.HasPrefix(row, "not lost") {
		return row
	}
	return "lost at " + row
}

func lostRow(l *record.LostAt, total int64, alone bool) string {
	if l.Place == record.Elsewhere {
		text := "not dropped on this host"
		unwatched := "; the far host was not watched"
		if l.NamespaceOnly {
			text = "not dropped in this network namespace"
			unwatched = "; its host and the far host were not watched"
		}
		if !alone || l.Segments < total {
			text += fmt.Sprintf(": %d of %s", l.Segments, retransmittedSegments(total))
		}
		return text + unwatched
	}
	text := fmt.Sprintf("this host's %s (%s)", placeNames[l.Place], strings.Join(lostDetails(l), ", "))
	switch {
	case l.Segments > 0:
		text += fmt.Sprintf(": %d of %s", l.Segments, retransmittedSegments(total))
	default:
		packets := "packets"
		if l.DroppedPackets == 1 {
			packets = "packet"
		}
		text += fmt.Sprintf(": %d %s, %s, without a retransmission", l.DroppedPackets, packets, units.Size(l.DroppedBytes))
	}
	return text
}

func retransmittedSegments(n int64) string {
	if n == 1 {
		return "1 retransmitted segment"
	}
	return fmt.Sprintf("%d retransmitted segments", n)
}

// lostDetails are the kernel's reason, and the hook, or the device and its queueing discipline.
func lostDetails(l *record.LostAt) []string {
	details := []string{l.Reason}
	switch {
	case l.Place == "firewall" && l.Forwarded:
		details = append(details, "forward hook")
	case l.Place == "firewall" && l.Side == record.SenderHost:
		details = append(details, "output hook")
	case l.Place == "firewall":
		details = append(details, "input hook")
	case l.Dev != "":
		details = append(details, strings.TrimSpace(l.Dev+" "+l.Qdisc))
	}
	return details
}
