package socket

import "testing"

// TestFlow_Drops sends more than fits into a receiver's buffer; nobody reads it.
func TestFlow_Drops(t *testing.T) {
	a, b := flowPair(t, FlowOptions{NoOffload: true, Buffer: 8192})
	if n, known := b.Drops(); n != 0 || !known {
		t.Fatalf("before: %d, %v", n, known)
	}
	const datagrams = 100
	for range datagrams {
		if err := a.Send(make([]byte, 1400), 1400); err != nil {
			t.Fatal(err)
		}
	}
	if n, known := b.Drops(); n < datagrams/2 || n > datagrams || !known {
		t.Errorf("%d dropped, %v", n, known)
	}
}
