package socket

import (
	"bytes"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// flowPair connects two flows over loopback.
func flowPair(t testing.TB, o FlowOptions) (a, b *Flow) {
	t.Helper()
	l, err := ListenFlows(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err = DialFlow(t.Context(), l.LocalAddr().String(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	o.Local = AddrPort(l.LocalAddr())
	b, err = DialFlow(t.Context(), a.Local().String(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	b.SetDeadline(time.Now().Add(5 * time.Second))
	return a, b
}

func TestTrainsArriveAsTheyWereSent(t *testing.T) {
	for name, o := range map[string]FlowOptions{"offload": {}, "one by one": {NoOffload: true},
		"buffers": {Buffer: 1 << 20, TOS: 32, DontFragment: true}} {
		t.Run(name, func(t *testing.T) {
			a, b := flowPair(t, o)
			const size = 1000
			sent := bytes.Repeat([]byte("0123456789"), 1250) // 12 datagrams and a half
			must.Do(t, a.Send(sent, size))
			var got []byte
			datagrams := 0
			for buffer := make([]byte, MaxTrain); len(got) < len(sent); {
				n, each, from, err := b.Receive(buffer)
				if err != nil {
					t.Fatalf("after %d bytes: %v", len(got), err)
				}
				if each > size || from != a.Local() {
					t.Fatalf("datagrams of %d bytes from %v", each, from)
				}
				datagrams += (n + each - 1) / each
				got = append(got, buffer[:n]...)
			}
			if !bytes.Equal(got, sent) || datagrams != 13 {
				t.Errorf("%d bytes in %d datagrams", len(got), datagrams)
			}
		})
	}
}

func FuzzTrainSize(f *testing.F) {
	f.Add(bytes.Repeat([]byte{20}, 40))
	f.Fuzz(func(t *testing.T, control []byte) { trainSize(control) })
}

func BenchmarkTrain(b *testing.B) {
	sender, _ := flowPair(b, FlowOptions{})
	batch := make([]byte, sender.Batch(1448)*1448)
	b.SetBytes(int64(len(batch)))
	b.ReportAllocs()
	for range b.N {
		must.Do(b, sender.Send(batch, 1448))
	}
}
