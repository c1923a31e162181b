package server

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// limited runs a server with a key only, until the test ends.
func limited(t *testing.T, c Config) *probe.Client {
	t.Helper()
	c.Address, c.Key = "127.0.0.1:0", probe.NewKey()
	s := must.Get(New(t.Context(), c))(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	client := must.Get(probe.Connect(t.Context(), s.Addr().String(), c.Key))(t)
	t.Cleanup(func() { client.Close() })
	return client
}

// A refusal names the field that exceeds a limit.
func TestServe_RefusalsNameTheField(t *testing.T) {
	limits := probe.DefaultLimits()
	limits.Time, limits.Bytes, limits.Bps = 5*time.Second, 1e6, 8e6
	client := limited(t, Config{Limits: limits, Streams: 2, Buffers: 1 << 20})
	slow := transfer.Program{WriteBps: 4e6}
	for _, c := range []struct {
		field string
		spec  transfer.Spec
	}{
		{"", transfer.Spec{Direction: transfer.Up, Bytes: 1000, Program: slow}},
		{"", transfer.Spec{Direction: transfer.Down, Bytes: 1000, Far: transfer.Socket{PacingBps: 8e6}}},
		{"Time", transfer.Spec{Direction: transfer.Up, Time: 6 * time.Second, Program: slow}},
		{"Bytes", transfer.Spec{Direction: transfer.Up, Bytes: 2e6, Program: slow}},
		{"Program.WriteBps", transfer.Spec{Direction: transfer.Up, Bytes: 1000}},
		{"Program.WriteBps", transfer.Spec{Direction: transfer.Up, Bytes: 1000, Streams: 2,
			Program: transfer.Program{WriteBps: 5e6}}},
		{"Program.WriteBps", transfer.Spec{Direction: transfer.Down, Bytes: 1000, Near: transfer.Socket{PacingBps: 1e6}}},
		{"Streams", transfer.Spec{Direction: transfer.Up, Bytes: 1000, Streams: 3, Program: transfer.Program{WriteBps: 1e6}}},
		{"Far", transfer.Spec{Direction: transfer.Up, Bytes: 1000, Streams: 2, Program: slow,
			Far: transfer.Socket{ReceiveBuffer: 600 << 10}}},
	} {
		_, err := transfer.Run(t.Context(), client, c.spec, nil)
		var refused *transfer.Unsupported
		if errors.As(err, &refused); c.field == "" && err != nil || c.field != "" &&
			(refused == nil || refused.Field != c.field) {
			t.Errorf("%+v: %v; want %q", c.spec, err, c.field)
		}
	}
}

// Clients that exceed a limit without announcing it are stopped.
func TestServe_StopsTransfersAboveLimits(t *testing.T) {
	for direction, want := range map[transfer.Direction]string{transfer.Up: "more than", transfer.Down: "more than"} {
		limits := probe.DefaultLimits()
		limits.Bytes = 1e6
		client := limited(t, Config{Limits: limits})
		result, err := transfer.Run(t.Context(), client, transfer.Spec{Direction: direction, Time: 10 * time.Second}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || result == nil || result.Complete {
			t.Errorf("%s: %v, %+v", direction, err, result)
		}
	}
}

// Streams and buffers are shared; without enough left the server is busy.
func TestServe_SharesStreamsAndBuffers(t *testing.T) {
	s := must.Get(New(t.Context(), Config{Address: "127.0.0.1:0", Streams: 3, Buffers: 1000}))(t)
	defer s.Close()
	expect := func(n, buffer int) (func(), error) {
		e := probe.Expected{Tokens: make([]probe.Preface, n), Local: netip.MustParseAddr("127.0.0.1")}
		for i := range e.Tokens {
			e.Tokens[i] = probe.NewToken()
		}
		e.Options.SendBuffer = buffer
		_, _, forget, err := s.Expect(t.Context(), e)
		return forget, err
	}
	forget, err := expect(2, 400)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := expect(2, 0); !errors.Is(err, errBusy) {
		t.Errorf("streams: %v", err)
	}
	if _, err := expect(1, 400); !errors.Is(err, errBusy) {
		t.Errorf("buffers: %v", err)
	}
	forget()
	forget, err = expect(2, 500)
	if err != nil {
		t.Errorf("when there is room again: %v", err)
	} else {
		forget()
	}
}
