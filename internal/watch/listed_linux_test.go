package watch

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/socklist"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// asMacOS lists this kernel's connections with only the fields that macOS has.
type asMacOS struct {
	conn *sockdiag.Conn
	once *sync.Once
	read chan struct{} // closed when it was read once
}

func (m asMacOS) Retransmissions() bool { return false }
func (m asMacOS) Close() error          { return nil }

func (m asMacOS) Read(want socklist.Want, each func(*socklist.Socket)) (int, error) {
	const ask = sockdiag.AskInfo | sockdiag.AskMemory
	defer m.once.Do(func() { close(m.read) })
	return 0, m.conn.Dump(sockdiag.Connected, ask, func(s *sockdiag.Socket) {
		if !want(s.Local, s.Remote) {
			return
		}
		var all transfer.Sample
		socket.DecodeLinux(s.Info, &all)
		each(&socklist.Socket{Key: s.Cookie, Local: s.Local, Remote: s.Remote, PID: int(s.Local.Port()),
			Established: s.State == sockdiag.Established, Handshake: *socket.HandshakeLinux(s.Info),
			Unread: int64(s.ReadQueue), Unacked: int64(s.WriteQueue), SendQueued: int64(s.Memory.SendQueued),
			SendBuffer: int64(s.Memory.SendBuffer), ReceiveBuffer: int64(s.Memory.ReceiveBuffer),
			Sample: transfer.Sample{Have: all.Have & (transfer.HaveRTT | transfer.HaveCwnd | transfer.HaveSendWnd |
				transfer.HaveInFlight | transfer.HaveNotSent | transfer.HaveAcked | transfer.HaveReceived |
				transfer.HaveReceiveWnd), RTT: all.RTT, Cwnd: all.Cwnd, SendWnd: all.SendWnd, InFlight: all.InFlight,
				NotSent: all.NotSent, Acked: max(all.Acked-1, 0), Sent: max(all.Acked-1, 0) + all.InFlight,
				Received: all.Received, ReceiveWnd: all.ReceiveWnd}})
	})
}

// By lists alone, an application-limited sender and a slow reader are found with low confidence, and all bytes are
// counted.
func TestListsAreEnoughForSome(t *testing.T) {
	t.Parallel()
	conn, err := sockdiag.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	l := listen(t)
	little, takes := loop(t, l)
	much, deaf := loop(t, l)
	go io.Copy(io.Discard, takes)
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
	defer stop()
	go func() {
		for ctx.Err() == nil {
			little.Write(make([]byte, 10_000))
			time.Sleep(50 * time.Millisecond)
		}
	}()
	list := asMacOS{conn, new(sync.Once), make(chan struct{})}
	go func() { // it begins when it is watched already
		<-list.read
		for buf := make([]byte, 64<<10); ; {
			if _, err := much.Write(buf); err != nil {
				return
			}
		}
	}()
	cfg := Config{Match: Match{Local: true, Ports: []uint16{uint16(l.Addr().(*net.TCPAddr).Port)}}, Cumulative: true}
	var seen []Observed
	views := 0
	name := func(int) string { return "someone" }
	err = follow(ctx, cfg.complete(), list, name, func(v *View) error {
		views++
		seen = slices.Clone(v.Connections)
		if v.Unread[0].Code != verdict.Retransmissions || v.Standing != 4 {
			t.Errorf("%d open, unread %v", v.Standing, v.Unread)
		}
		return nil
	})
	if !errors.Is(err, context.DeadlineExceeded) || views != 1 {
		t.Fatalf("%d views, %v", views, err)
	}
	want := map[string]verdict.Name{little.LocalAddr().String(): verdict.Application,
		much.LocalAddr().String(): verdict.ReceiverApplication, deaf.LocalAddr().String(): verdict.ReceiverApplication}
	for _, s := range seen {
		for _, f := range s.Flows {
			name := s.Local.String()
			if f.Direction == transfer.Down {
				if s.Remote.String() != much.LocalAddr().String() {
					continue
				}
				name = deaf.LocalAddr().String()
			}
			if f.Verdict.Limiter != want[name] || f.Verdict.Confidence != verdict.Low {
				t.Errorf("%v %s: %s, %s: %v", s.Local, f.Direction, f.Verdict.Limiter, f.Verdict.Confidence, f.Verdict)
			}
		}
		if s.Owner.Program != "someone" || s.Owner.PID != int(s.Local.Port()) {
			t.Errorf("%v is of %+v", s.Local, s.Owner)
		}
		if s.Local.String() == little.LocalAddr().String() {
			if in := info(t, little); s.Sent() > int64(in.Bytes_acked) || s.Sent() < 100_000 {
				t.Errorf("%d sent of %d", s.Sent(), in.Bytes_acked)
			}
		}
	}
	if len(seen) != 4 {
		t.Errorf("%d connections moved something", len(seen))
	}
}

// A connection that is listed no more has ended, and is shown once more.
func TestLister_Ends(t *testing.T) {
	l := &lister{list: fixed{}, program: func(int) string { return "" }, account: NewTracker(), start: time.Now()}
	one := socklist.Socket{Key: 1, Established: true, Local: netip.MustParseAddrPort("192.0.2.1:5000"),
		Remote: netip.MustParseAddrPort("198.51.100.1:443")}
	for i := range 3 {
		one.Sample.Acked = int64(i+1) * 1000
		l.list = fixed{&one}
		if err := l.read(); err != nil {
			t.Fatal(err)
		}
	}
	l.list = fixed{}
	if err := errors.Join(l.read(), l.read()); err != nil {
		t.Fatal(err)
	}
	sum := l.account.totals
	if l.account.Len() != 0 || sum.Unfinished != 1 || sum.Sent != 2000 {
		t.Errorf("%d open, %+v", l.account.Len(), sum)
	}
	var ended []bool
	l.account.Period(func(c *Connection) { ended = append(ended, c.Ended) })
	if len(ended) != 1 || !ended[0] {
		t.Errorf("shown: %v", ended)
	}
}

type fixed []*socklist.Socket

func (f fixed) Retransmissions() bool { return true }
func (f fixed) Close() error          { return nil }

func (f fixed) Read(_ socklist.Want, each func(*socklist.Socket)) (int, error) {
	for _, s := range f {
		each(s)
	}
	return 0, nil
}

// failing lists some connections, then returns errors until it is closed.
type failing struct {
	fixed
	left int // lists that succeed
}

func (f *failing) Read(want socklist.Want, each func(*socklist.Socket)) (int, error) {
	if f.left--; f.left < 0 {
		return 0, errors.New("no list")
	}
	_, err := f.fixed.Read(want, each)
	return 2, err
}

func (f *failing) Close() error { return errors.New("left on") }

// A failed list ends no connection and hides none; a failed Close is reported.
func TestListsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := socklist.Socket{Key: 1, Established: true, Local: netip.MustParseAddrPort("192.0.2.1:5000"),
			Remote: netip.MustParseAddrPort("198.51.100.1:443")}
		one.Sample.Acked = 100_000
		ctx, stop := context.WithTimeout(t.Context(), 1200*time.Millisecond)
		defer stop()
		cfg, shown := Config{Cumulative: true}, 0
		none := func(int) string { return "" }
		err := follow(ctx, cfg.complete(), &failing{fixed{&one}, 2}, none, func(v *View) error {
			shown++
			var words []string
			for _, note := range v.Unread {
				words = append(words, note.Words...)
			}
			if v.Standing != 1 || v.Totals.Unfinished != 0 || len(words) != 2 || !strings.Contains(words[0], "no list") ||
				!strings.Contains(words[1], "left on") {
				t.Errorf("%d open, %+v, not seen: %+v", v.Standing, v.Totals, v.Unread)
			}
			return nil
		})
		if shown != 1 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("shown %d times, %v", shown, err)
		}
		err = follow(t.Context(), cfg.complete(), &failing{}, none, func(*View) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "no list") {
			t.Errorf("without any list: %v", err)
		}
	})
}

// A connection that is idle in most lists is not application-limited in the others.
func TestLister_MostlyIdle(t *testing.T) {
	account := NewTracker()
	snap := Snapshot{Cookie: 1, Established: true, Polled: true, SendBuffer: 400_000,
		Sample: transfer.Sample{Have: transfer.HaveNotSent | transfer.HaveSendWnd | transfer.HaveLimits}}
	c := account.Read(snap)
	account.EndDump(0)
	account.Period(func(*Connection) {})
	for i := range 20 {
		next := snap
		next.Sample.At, next.Sample.Acked = time.Duration(i+1)*250*time.Millisecond, int64(i+1)*50_000
		next.Sample.Sent, next.Sample.Cwnd, next.Sample.SendWnd = next.Sample.Acked, 50_000, 1_000_000
		if i%4 == 0 { // a full congestion window, and more waits
			next.Unacked, next.SendQueued = 150_000, 150_000
			next.Sample.InFlight, next.Sample.NotSent = 50_000, 100_000
		}
		next.since(&c.Snapshot, 1448, false)
		account.Read(next)
	}
	v := account.flow(c, transfer.Up).Verdict
	if share := v.Shares[verdict.Application]; share < 0.7 || share > 0.8 {
		t.Errorf("application %.2f of %+v", share, v.Shares)
	}
}

// A window that is full in every list is receiver-limited, and the evidence has the number of lists.
func TestLister_FullWindow(t *testing.T) {
	full := transfer.Sample{Have: transfer.HaveNotSent | transfer.HaveSendWnd | transfer.HaveRTT, InFlight: 64_000,
		SendWnd: 64_000, Cwnd: 500_000, NotSent: 100_000, RTT: 40 * time.Millisecond, MinRTT: 40 * time.Millisecond}
	snap := Snapshot{Cookie: 1, Established: true, Unacked: 164_000, SendQueued: 164_000, SendBuffer: 400_000,
		Sample: full}
	snap.Polled = true
	snap.Sample.Have |= transfer.HaveLimits
	account := NewTracker()
	c := account.Read(snap)
	account.EndDump(0)
	account.Period(func(*Connection) {})
	for i := range 8 {
		next := snap
		next.Sample = full
		next.Sample.Have |= transfer.HaveLimits
		next.Sample.At, next.Sample.Acked = time.Duration(i+1)*250*time.Millisecond, int64(i+1)*400_000
		next.Sample.Sent = next.Sample.Acked + full.InFlight
		next.since(&c.Snapshot, 1448, false)
		account.Read(next)
	}
	v := account.flow(c, transfer.Up).Verdict
	if v.Limiter != verdict.ReceiverWindow || v.Confidence != verdict.Low || len(v.Evidence) == 0 ||
		v.Evidence[0].Code != verdict.SnapshotsAlone || v.Evidence[0].Values["readings"] != 8 {
		t.Errorf("%+v", v)
	}
}
