package watch

import (
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// TestReadMoved_OnlyActive: of many connections a period reads only those that moved, with the same result as a dump.
func TestReadMoved_OnlyActive(t *testing.T) {
	const n = manySockets/2 + 10
	testenv.Need(t, testenv.BPF, testenv.NetworkNamespace)
	if !testenv.Inside(t, unix.CLONE_NEWNET) { // the connections of others move too, and are lost
		return
	}
	w, all := crowd(t, n)
	var seen []Observed
	period := func() {
		t.Helper()
		if err := w.period(func(v *View) error { seen = v.Connections; return nil }, false); err != nil {
			t.Fatal(err)
		}
	}
	for range passesInTurn + 2 { // until the connections' start has been reported
		period()
	}
	client, server := all[0], all[1]
	move := func(from, to net.Conn, bytes int) {
		t.Helper()
		go from.Write(make([]byte, bytes))
		if _, err := io.ReadFull(to, make([]byte, bytes)); err != nil {
			t.Fatal(err)
		}
		for info(t, from.(*net.TCPConn)).Unacked > 0 {
			time.Sleep(time.Millisecond)
		}
	}
	var ended [2]*Connection // the two of client and server
	for i, dumps := range []bool{false, true, false, false} {
		w.activeSockets.left = 1
		if dumps {
			w.activeSockets.left = 0
		}
		move(client, server, 100_000+i)
		before := w.activeSockets.left
		period()
		if passed := w.activeSockets.left < before; passed == dumps {
			t.Fatalf("period %d: a pass %v", i, passed)
		}
		if len(seen) != 2 {
			t.Fatalf("period %d: %d connections moved, not 2", i, len(seen))
		}
		for end, s := range seen {
			ended[end] = s.Connection
			if len(s.Flows) != 1 || s.Flows[0].Bytes != int64(100_000+i) {
				t.Errorf("period %d: %+v", i, s.Flows)
			}
			if span := s.Sample.At - s.mark.At; span <= 0 || span > s.Sample.At-s.FirstSeen {
				t.Errorf("period %d: it is said to have moved for %v", i, span)
			}
		}
	}
	// An idle connection counts from the last pass, not from its last snapshot.
	read := w.account.checkedAt
	move(all[2], all[3], 1000)
	w.activeSockets.left = 1
	if period(); len(seen) != 2 || seen[0].mark.At != read || seen[1].mark.At != read {
		t.Errorf("%d moved, which count from %v and %v; all were looked at by %v", len(seen), seen[0].mark.At,
			seen[len(seen)-1].mark.At, read)
	}
	// A read by the program is noticed without traffic.
	if _, err := client.Write(make([]byte, 3000)); err != nil {
		t.Fatal(err)
	}
	snap := ended[0]
	if snap.Remote != client.LocalAddr().(*net.TCPAddr).AddrPort() {
		snap = ended[1]
	}
	for range 3 {
		w.activeSockets.left = 1
		period()
	}
	if snap.Unread != 3000 {
		t.Errorf("%d bytes are unread, not 3000", snap.Unread)
	}
	if _, err := io.ReadFull(server, make([]byte, 3000)); err != nil {
		t.Fatal(err)
	}
	w.activeSockets.left = 1
	if period(); snap.Unread != 0 {
		t.Errorf("%d bytes are unread after they were read", snap.Unread)
	}
	// Where most move all are read.
	for i := range n {
		if _, err := all[2*i].Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	w.activeSockets.left = 1
	if period(); w.activeSockets.rest != passesInTurn || len(seen) < n {
		t.Errorf("%d moved, not %d or more; %d dumps follow", len(seen), n, w.activeSockets.rest)
	}
}

// TestManyEndsThatWereLostAreFound: where messages of ends were lost, two dumps find whose.
func TestManyEndsThatWereLostAreFound(t *testing.T) {
	const n = manySockets/2 + 10
	testenv.Need(t, testenv.BPF, testenv.NetworkNamespace)
	if !testenv.Inside(t, unix.CLONE_NEWNET) {
		return
	}
	w, all := crowd(t, n)
	each := func(*View) error { return nil }
	for i := range 20 {
		all[i].(*net.TCPConn).SetLinger(0)
		all[i].Close()
	}
	if err := w.sockets.Ends.Take(func(*sockdiag.Socket) {}); err != nil { // lost
		t.Fatal(err)
	}
	w.activeSockets.lost-- // and counted
	for range 2 {
		if err := w.period(each, false); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.account.Len(); got != 2*n-20 {
		t.Errorf("%d open, not %d", got, 2*n-20)
	}
}
