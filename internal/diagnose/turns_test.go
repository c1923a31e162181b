package diagnose

import (
	"testing"
)

// TestNew_RequestsWithLosses reads 251 requests of 300 bytes over 12 ms and 3 % loss, from the middle of the path. The
// client counted 14 that took longer than 40 ms, 3.10 s beyond the others, a median of 12.4 ms and a p99 of 242 ms.
func TestNew_RequestsWithLosses(t *testing.T) {
	c := New(followed(t, save(load(t, "testdata/cases/requests-loss.pcap.zst"))), 1).Record.Connections[0]
	turns := c.Turns
	if turns == nil || turns.Count != 251 || turns.P99S == nil {
		t.Fatalf("%+v", turns)
	}
	if turns.P50S < 0.0118 || turns.P50S > 0.0126 || *turns.P99S < 0.235 || *turns.P99S > 0.245 {
		t.Errorf("median %v, p99 %v", turns.P50S, *turns.P99S)
	}
	var count int64
	var time float64
	for _, s := range c.Stalls {
		count += s.Count
		time += s.TimeS
	}
	if count != 14 || time < 3.05 || time > 3.15 {
		t.Errorf("%d stalls of %v s: %+v", count, time, c.Stalls)
	}
	var lost float64
	for _, d := range c.Directions {
		lost += d.LostS
	}
	if lost < 3.05 || lost > 3.2 {
		t.Errorf("both directions lost %v s", lost)
	}
}

// TestNew_RequestsOfManyConnections repeats the requests with eight clients: the server has one answer.
func TestNew_RequestsOfManyConnections(t *testing.T) {
	const clients = 8
	all := byManyHosts(load(t, "testdata/cases/requests-loss.pcap.zst"), clients)
	r := New(followed(t, save(all)), 1).Record
	if len(r.Servers) != 1 || len(r.Connections) != clients {
		t.Fatalf("%d servers, %d connections", len(r.Servers), len(r.Connections))
	}
	server := r.Servers[0]
	one := r.Connections[0].Requests
	if server.Connections != clients || server.Clients != clients || server.Turns.Count != clients*one.Turns.Count {
		t.Errorf("%+v of %d requests", server, server.Turns.Count)
	}
	if got, want := server.Turns.P50S, one.Turns.P50S; got < want*0.999 || got > want*1.001 {
		t.Errorf("median %v, of each connection %v", got, want)
	}
	if got, want := allStalled(server.Stalls), clients*allStalled(one.Stalls); got < want*0.999 || got > want*1.001 {
		t.Errorf("stalled %v s, want %v", got, want)
	}
	for _, slow := range server.Turns.Slowest {
		var sum float64
		for _, part := range slow.Parts {
			sum += part.TimeS
		}
		if sum < slow.DurationS*0.999 || sum > slow.DurationS*1.001 || slow.FirstPacket == 0 || slow.Client == "" {
			t.Errorf("%+v: its parts take %v s", slow, sum)
		}
	}
	if r.ServerOf(&r.Connections[0]) == nil {
		t.Error("the server does not lead")
	}
}
