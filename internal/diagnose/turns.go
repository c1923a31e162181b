package diagnose

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/turns"
)

// addRequests adds the requests of each connection of the record, and those of all captured
// connections to each server; numbered: the capture is one file.
func addRequests(r *record.Diagnose, judged []judgement, captured []*flow.Connection, numbered bool) {
	r.Servers = servers(captured, numbered)
	leading := map[string]bool{}
	for i := range r.Servers {
		leading[r.Servers[i].Server] = r.Servers[i].Leads()
	}
	for i := range judged {
		c := &judged[i].record
		c.Requests = requests([]*flow.Connection{judged[i].connection}, numbered)
		if !c.Leads() && !(leading[c.Server] && c.Turns != nil) {
			continue
		}
		client, _ := judged[i].connection.TurnEnds()
		for j := range c.Directions {
			d := &c.Directions[j]
			d.LostS = stalled(c.Stalls, d.From == client.AddrPort().String())
		}
	}
}

// maxServers bounds the servers of a record: some 5 kB each.
const maxServers = 100

// servers returns the requests of the servers with more than one connection, the most stalled
// first.
func servers(captured []*flow.Connection, numbered bool) (all []record.CapturedServer) {
	byServer := map[flow.Endpoint][]*flow.Connection{}
	for _, c := range captured {
		if t := c.Turns(); t.Count > t.Bulky || t.Unanswered > 0 {
			_, server := c.TurnEnds()
			byServer[server] = append(byServer[server], c)
		}
	}
	for server, connections := range byServer {
		if len(connections) < 2 {
			continue
		}
		clients := map[netip.Addr]bool{}
		for _, c := range connections {
			client, _ := c.TurnEnds()
			clients[client.AddrPort().Addr()] = true
		}
		one := record.CapturedServer{Server: server.AddrPort().String(), Connections: int64(len(connections)),
			Clients: int64(len(clients)), Requests: requests(connections, numbered)}
		if one.Turns != nil {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b record.CapturedServer) int {
		return cmp.Or(cmp.Compare(allStalled(b.Stalls), allStalled(a.Stalls)), cmp.Compare(b.Turns.Count, a.Turns.Count),
			cmp.Compare(a.Server, b.Server))
	})
	return all[:min(len(all), maxServers)]
}

// requests returns the requests of connections; of none but bulk transfers it returns nothing.
func requests(all []*flow.Connection, numbered bool) (r record.Requests) {
	summaries := make([]*turns.Summary, len(all))
	assumed := false
	began := all[0].Started
	for i, c := range all {
		summaries[i] = &c.Turns().Summary
		assumed = assumed || c.ClientAssumed()
		began = min(began, c.Started)
	}
	p := turns.ProfileOf(summaries...)
	if p.Count == p.Bulky {
		return r
	}
	r = record.RequestsOf(&p)
	r.Turns.ClientAssumed = assumed
	for i, one := range p.Longest[:len(r.Turns.Slowest)] {
		c := all[one.Connection]
		client, _ := c.TurnEnds()
		s := &r.Turns.Slowest[i]
		s.Client = client.AddrPort().String()
		s.StartS = seconds(one.Start + c.Started - began)
		if numbered {
			s.FirstPacket = one.First
			s.LastPacket = one.Last
		}
	}
	return r
}

// stalled returns the time of the stalls in which one end owed the next packet.
func stalled(all []record.Stall, client bool) (sum float64) {
	for _, s := range all {
		if (s.From == "client") == client {
			sum += s.TimeS
		}
	}
	return sum
}

func allStalled(all []record.Stall) float64 { return stalled(all, true) + stalled(all, false) }

func seconds(ns int64) float64 { return float64(ns) / 1e9 }
