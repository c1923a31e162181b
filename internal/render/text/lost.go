package text

import (
	"fmt"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// placeNames has the words for the places of loss of a host.
var placeNames = map[string]string{
	"firewall": "firewall", "filter": "packet filter", "queue": "queue", "device": "network device",
	"backlog": "receive backlog", "socket": "socket buffer", "route": "routing", "packet-size": "packet size limit",
	"invalid": "packet checks", "other": "kernel",
}

// lostRows returns the sentences about places of loss, one for each, from the host that d's Up
// sends. retransmitted is the sender's own count, nil: unknown. Under a flood of drops fewer
// retransmissions are seen than it counts.
func lostRows(all []record.LostAt, d transfer.Direction, retransmitted *int64) (rows []string) {
	total := int64(0)
	for i := range all {
		total += all[i].Segments
	}
	if retransmitted != nil {
		total = max(total, *retransmitted)
	}
	here := hereOf(d)
	for i := range all {
		l := &all[i]
		text := ""
		share := ""
		if len(all) > 1 || l.Segments < total {
			share = fmt.Sprintf(": %d of %s", l.Segments, retransmittedSegments(total))
		}
		switch {
		case l.Place == record.NotLost:
			text = fmt.Sprintf("not lost: %d of %s had arrived before (DSACK)", l.Segments, retransmittedSegments(total))
		case l.Place == record.BetweenHosts && share == "":
			text = "between the hosts: all places at both ends were watched, none dropped them"
		case l.Place == record.BetweenHosts:
			text = "between the hosts" + share + "; both ends were watched"
		case l.Place == record.Elsewhere:
			text = unwatched(l, here, share)
		default:
			text = lostHere(l, here, total)
		}
		rows = append(rows, text)
	}
	return rows
}

// Findings returns the evidence and the places of loss of a direction as sentences.
func Findings(d *record.Direction) (rows []string) {
	for _, e := range d.Evidence {
		rows = append(rows, Sentence(e))
	}
	for _, row := range lostRows(d.LostAt, d.Direction, d.RetransmittedSegment) {
		rows = append(rows, lostClause(row))
	}
	return rows
}

// lostTable adds the places of loss of a direction.
func lostTable(t *table, d *record.Direction) {
	name := "lost at"
	for _, row := range lostRows(d.LostAt, d.Direction, d.RetransmittedSegment) {
		t.row(name, row)
		name = ""
	}
}

// lostClause makes a sentence of a row without its title.
func lostClause(row string) string {
	switch {
	case strings.HasPrefix(row, "not "):
		return row
	case strings.HasPrefix(row, "between"):
		return "lost " + row
	}
	return "lost at " + row
}

// unwatched names the hosts that were not watched, for packets that no watched place dropped.
func unwatched(l *record.LostAt, here, share string) string {
	if l.AddressesChange {
		share += "; addresses change on the way (NAT), and drops behind it are not seen"
	}
	switch {
	case l.Watched == record.BothHosts && l.NamespaceOnly:
		return "not dropped in the two network namespaces" + share + "; their hosts were not watched"
	case l.Watched == record.BothHosts:
		return "not dropped on the two hosts, as far as they see" + share
	case l.Watched != here:
		return "not dropped on the far host" + share + "; this host was not watched"
	case l.NamespaceOnly:
		return "not dropped in this network namespace" + share + "; its host and the far host were not watched"
	}
	return "not dropped on this host" + share + "; the far host was not watched"
}

// lostHere is about packets that a watched host dropped.
func lostHere(l *record.LostAt, here string, total int64) string {
	text := fmt.Sprintf("%s %s (%s)", hostOf(l, here), placeNames[l.Place], strings.Join(lostDetails(l), ", "))
	if l.Counter != "" {
		return text + fmt.Sprintf(": %s; confidence %s (counters of all connections)", moved(l, total), l.Confidence)
	}
	if l.Segments > 0 {
		return text + fmt.Sprintf(": %d of %s", l.Segments, retransmittedSegments(total))
	}
	return text + fmt.Sprintf(": %s, %s, without a retransmission", counted(l.DroppedPackets, "packet"),
		units.Size(l.DroppedBytes))
}

// hereOf returns the side of this host.
func hereOf(d transfer.Direction) string {
	if d == transfer.Up {
		return record.SenderHost
	}
	return record.ReceiverHost
}

// hostOf names the host of a place.
func hostOf(l *record.LostAt, here string) string {
	switch l.Side {
	case here:
		return "this host's"
	case record.SenderHost:
		return "the sender's"
	}
	return "the receiver's"
}

// moved is about packets that a counter of the host counted.
func moved(l *record.LostAt, total int64) string {
	text := counted(l.DroppedPackets, "packet") + " dropped, " + retransmittedSegments(total)
	if l.DroppedBytes > 0 {
		text = fmt.Sprintf("%s, %s, dropped, %s", counted(l.DroppedPackets, "packet"), units.Size(l.DroppedBytes),
			retransmittedSegments(total))
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
	if l.Counter != "" {
		details = []string{l.Counter}
	}
	switch {
	case l.Rule != "":
		details = append(details, l.Rule)
	case l.Counter != "" && l.Dev != "":
		details = append(details, l.Dev)
	case l.Counter != "":
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

// AllowanceNote is about a counter of packets beyond a cloud's allowance for a host.
func AllowanceNote(c transfer.DropCounter, far bool) string {
	host := "this host"
	if far {
		host = "the far host"
	}
	return fmt.Sprintf("the cloud limits %s: %s counted %s during the transfer, delayed or dropped", host, c.Name,
		counted(c.Packets, "packet"))
}
