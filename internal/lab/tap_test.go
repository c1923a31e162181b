//go:build linux

package lab

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// The capture contains every delivered packet, in order of time.
func TestTap_RecordsDeliveredPackets(t *testing.T) {
	testenv.Need(t, testenv.Lab)
	t.Parallel()
	path := must.Get(link.Parse("rate=20mbit,rtt=20ms,jitter=2ms,loss=1%,seed=2"))(t)
	name := filepath.Join(t.TempDir(), "middle.pcap")
	file := must.Get(os.Create(name))(t)
	defer file.Close()
	l := must.Get(Start(context.Background(), Config{Path: path, Tap: file}))(t)
	iperf3(t, l, "-n", "300K")
	up, down, err := l.Counters()
	if err != nil {
		t.Fatal(err)
	}
	must.Do(t, l.Close())
	data, err := os.ReadFile(name)
	if err != nil || len(data) < 24 {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	var packets, total int64
	var last uint64
	for at := 24; at < len(data); packets++ {
		second, nano := binary.LittleEndian.Uint32(data[at:]), binary.LittleEndian.Uint32(data[at+4:])
		kept, length := binary.LittleEndian.Uint32(data[at+8:]), binary.LittleEndian.Uint32(data[at+12:])
		if when := uint64(second)*1e9 + uint64(nano); when < last {
			t.Fatalf("packet %d is %d ns before the one in front of it", packets, last-when)
		} else {
			last = when
		}
		packet := data[at+16 : at+16+int(kept)]
		if got := binary.BigEndian.Uint16(packet[2:]); length > 1500 || uint32(got) != length || kept < 40 {
			t.Fatalf("packet %d: %d bytes, %d of them captured, %d by its header", packets, length, kept, got)
		}
		total += int64(length)
		at += 16 + int(kept)
	}
	// A few packets may pass after the counters were read.
	if n := up.Delivered + down.Delivered; packets < n || packets > n+20 || total < up.DeliveredBytes+down.DeliveredBytes {
		t.Errorf("captured %d packets and %d bytes; delivered %d and %d", packets, total, n, up.DeliveredBytes+
			down.DeliveredBytes)
	}
}
