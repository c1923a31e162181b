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
