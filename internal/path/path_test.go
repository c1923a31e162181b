package path

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestJitter(t *testing.T) {
	r := RoundTrips{}
	if r.Least() != 0 || r.Jitter() != 0 {
		t.Errorf("nothing measured: %v, %v", r.Least(), r.Jitter())
	}
	for i := range 100 {
		r.Times = append(r.Times, time.Duration(10+(i*37)%100)*time.Millisecond)
	}
	if r.Least() != 10*time.Millisecond || r.Jitter() != 94*time.Millisecond {
		t.Errorf("10 to 109 ms: least %v, jitter %v", r.Least(), r.Jitter())
	}
}

var quick = Config{Count: 5, Every: time.Millisecond, Timeout: time.Second}

func TestRoundTripsOfLoopback(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			t.Logf("no %s here: %v", host, err)
			continue
		}
		open := l.Addr().(*net.TCPAddr).AddrPort()
		r, err := Ask(context.Background(), open, quick)
		if err != nil || len(r.Times) != 5 || r.Least() <= 0 || r.Least() > time.Second {
			t.Errorf("%s: %+v, %v", host, r, err)
		}
		t.Logf("%s: %+v", host, r)
		r, err = connects(context.Background(), open, quick.withDefaults())
		if err != nil || len(r.Times) != 5 || r.Method != Connecting {
			t.Errorf("%s, an open port: %+v, %v", host, r, err)
		}
		l.Close()
		r, err = connects(context.Background(), open, quick)
		if err != nil || len(r.Times) != 5 {
			t.Errorf("%s, a refused port: %+v, %v", host, r, err)
		}
	}
}

func TestAskEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Ask(ctx, netip.MustParseAddrPort("127.0.0.1:9"), Config{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestMTUOfLoopback(t *testing.T) {
	testenv.Need(t, testenv.ICMP)
	m, err := FindMTU(context.Background(), netip.MustParseAddr("127.0.0.1"), quick)
	if err != nil || m.Bytes != 65535 || m.Largest != 65535 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestDisagreements(t *testing.T) {
	near := transfer.Handshake{SendScale: 7, ReceiveScale: 8, SACK: true, Timestamps: true}
	far := transfer.Handshake{SendScale: 8, ReceiveScale: 7, SACK: true, Timestamps: true}
	if d := Disagreements(&near, &far); d != nil {
		t.Errorf("two ends that agree: %v", d)
	}
	far.SendScale, far.Timestamps = -1, false
	if d := Disagreements(&near, &far); !slices.Equal(d, []string{"window scaling", "timestamps"}) {
		t.Errorf("two ends that do not: %v", d)
	}
	if d := Disagreements(&near, nil); d != nil {
		t.Errorf("an end that cannot be seen: %v", d)
	}
}
