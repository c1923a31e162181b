package report

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/limiter"
)

func TestExecText(t *testing.T) {
	number := func(v int) *int { return &v }
	bytes, small := int64(5<<20), int64(400)
	rate, lasted := 20.4e6, 2.0
	verdict := limiter.Verdict{Limiter: limiter.SendBuffer, Confidence: limiter.High, Shares: limiter.Shares{limiter.SendBuffer: 1}}
	e := Exec{Command: []string{"rsync", "-a", "big/", "host:"}, ElapsedS: 2, ProcessesLeft: 1, Connections: []ExecConnection{
		{Role: "opened", Remote: "192.0.2.1:22", Congestion: "bbr", Windows: Windows{&Buffer{Automatic: true}, &Buffer{Automatic: true}}},
		{Role: "accepted", Remote: "192.0.2.7:51234", LastedS: &lasted, Congestion: "cubic",
			Windows: Windows{&Buffer{RequestedBytes: number(16 << 20), GrantedBytes: number(8 << 20), Clipped: true}, &Buffer{Automatic: true}},
			Program: &ExecAsked{Ignored: true, SendBufferBytes: number(1 << 16)},
			Directions: []Direction{{Direction: "up", Bytes: &bytes, GoodputBps: &rate, Verdict: verdict},
				{Direction: "down", Bytes: &small, Verdict: limiter.Verdict{Limiter: limiter.Unknown}}}},
	}}
	var b strings.Builder
	e.WriteText(&b)
	want := `exec: rsync -a big/ host:: status 0 after 2 s, 2 connections
  connection               payload      goodput  send buffer         receive buffer  congestion  limited by
  from 192.0.2.7:51234  5 MiB sent  20.4 Mbit/s  16 MiB (got 4 MiB)  automatic       cubic       send-buffer, high confidence
  to 192.0.2.1:22             none               automatic           automatic       bbr
  note: the program's own buffer sizes were ignored on 1 connection
  note: some connections got smaller buffers than asked: they ended first, or the program set its own
  note: 1 process is still running; connections that stand keep what they have, new ones get the system's defaults
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestExecTextOfManyConnections(t *testing.T) {
	e := Exec{Command: []string{"ab"}, Connections: make([]ExecConnection, 1000)}
	for i := range e.Connections {
		e.Connections[i].Windows = Windows{&Buffer{Automatic: true}, &Buffer{Automatic: true}}
	}
	var b strings.Builder
	e.WriteText(&b)
	if lines := strings.Count(b.String(), "\n"); lines != 23 || !strings.Contains(b.String(), "and 980 lighter connections with 0 B together") {
		t.Errorf("%d lines:\n%s", lines, &b)
	}
}
