package text

import (
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func TestExecText(t *testing.T) {
	bytes, small := int64(5<<20), int64(400)
	rate := 20.4e6
	limited := verdict.Verdict{Limiter: verdict.SendBuffer, Confidence: verdict.High,
		Shares: verdict.Shares{verdict.SendBuffer: 1}}
	e := record.Exec{Command: []string{"rsync", "-a", "big/", "host:"}, ElapsedS: 2, ProcessesLeft: 1,
		Connections: []record.ExecConnection{
			{Role: "opened", Remote: "192.0.2.1:22", Congestion: "bbr",
				Windows: record.Windows{SendBuffer: &record.Buffer{Automatic: true},
					ReceiveBuffer: &record.Buffer{Automatic: true}}},
			{Role: "accepted", Remote: "192.0.2.7:51234", Lasted: units.Duration(2 * time.Second), Congestion: "cubic",
				Windows: record.Windows{SendBuffer: &record.Buffer{RequestedBytes: 16 << 20, GrantedBytes: 8 << 20,
					Clipped: true}, ReceiveBuffer: &record.Buffer{Automatic: true}},
				Program: &record.ExecAsked{Ignored: true, SendBufferBytes: 1 << 16},
				Directions: []record.Direction{{Direction: "up", Bytes: &bytes, GoodputBps: &rate, Verdict: limited},
					{Direction: "down", Bytes: &small, Verdict: verdict.Verdict{Limiter: verdict.Unknown}}}},
		}}
	var b strings.Builder
	Exec(&b, &e)
	want := `exec: rsync -a big/ host:: status 0 after 2 s, 2 connections
  connection               payload      goodput  send buffer         receive buffer  congestion  limited by
  from 192.0.2.7:51234  5 MiB sent  20.4 Mbit/s  16 MiB (got 4 MiB)  automatic       cubic       send-buffer, high confidence
  to 192.0.2.1:22             none               automatic           automatic       bbr
  do: give both ends larger buffers, or leave SO_RCVBUF and SO_SNDBUF alone so that the systems size
      them (fullpipe tune finds how large)
  note: the program's own buffer sizes were ignored on 1 connection
  note: some connections got smaller buffers than asked: they ended first, or the program set its own
  note: 1 process is still running; open connections keep their settings, new ones get the system's defaults
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestExecTextOfManyConnections(t *testing.T) {
	e := record.Exec{Command: []string{"ab"}, Connections: make([]record.ExecConnection, 1000)}
	for i := range e.Connections {
		e.Connections[i].Windows = record.Windows{SendBuffer: &record.Buffer{Automatic: true},
			ReceiveBuffer: &record.Buffer{Automatic: true}}
	}
	var b strings.Builder
	Exec(&b, &e)
	if lines := strings.Count(b.String(), "\n"); lines != 23 || !strings.Contains(b.String(),
		"and 980 lighter connections with 0 B together") {
		t.Errorf("%d lines:\n%s", lines, &b)
	}
}
