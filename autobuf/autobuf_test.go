package autobuf

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestFixedSize(t *testing.T) {
	const kb, mb = 1 << 10, 1 << 20
	for _, tt := range []struct {
		name                           string
		window, automatic, limit, want int
	}{
		{"not stated", 0, 4 * mb, 8 * mb, 0},
		{"automatic reaches it", 2 * mb, 4 * mb, 8 * mb, 0},
		{"beyond automatic", 3 * mb, 4 * mb, 8 * mb, 3 * mb},
		{"beyond both", 9 * mb, 4 * mb, 8 * mb, 4 * mb},
		{"Debian 12: a request gets less than automatic", 9 * mb, 4 * mb, 416 * kb, 0},
		{"automatic is off", 100 * kb, 0, 416 * kb, 100 * kb},
	} {
		if got := fixedSize(tt.window, tt.automatic, tt.limit, 2); got != tt.want {
			t.Errorf("%s: fixedSize(%d, %d, %d) = %d, want %d", tt.name, tt.window, tt.automatic, tt.limit, got, tt.want)
		}
	}
}

func TestTooSmall(t *testing.T) {
	for _, tt := range []struct {
		name                   string
		fixed                  int
		useful, now, automatic int
		want                   bool
	}{
		{"automatic still grows", 0, 1 << 30, 1 << 20, 4 << 20, false},
		{"automatic is at its maximum", 0, 2 << 20, 4 << 20, 4 << 20, true},
		{"automatic is at its maximum and enough", 0, 1 << 20, 4 << 20, 4 << 20, false},
		{"fixed and too small", 32 << 10, 64 << 10, 64 << 10, 4 << 20, true},
		{"fixed and enough", 32 << 10, 20 << 10, 64 << 10, 4 << 20, false},
	} {
		b := buffer{fixed: tt.fixed}
		if got := b.tooSmall(tt.useful, tt.now, tt.automatic, 2); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// TestTuner_SamplesIdleConnectionsRarely counts the samples of an hour without data, and expects short intervals again
// when data moves.
func TestTuner_SamplesIdleConnectionsRarely(t *testing.T) {
	tuner := &tuner{interval: minInterval}
	now := transfer.Sample{Acked: 1}
	tuner.schedule(&now, false)
	tuner.last = now
	count := 0
	for now.At < time.Hour {
		now.At += tuner.interval
		if now.At < 10*time.Second && tuner.interval > maxInterval {
			t.Fatalf("the next sample of a connection idle for %v is in %v", now.At, tuner.interval)
		}
		tuner.schedule(&now, false)
		count++
	}
	if count > 150 {
		t.Errorf("%d samples of an idle connection in an hour", count)
	}
	now.Acked++
	if tuner.schedule(&now, false); tuner.interval != minInterval {
		t.Errorf("%v to the next sample while data moves", tuner.interval)
	}
}

func TestPath_Window(t *testing.T) {
	for path, want := range map[Path]int{
		{}:                                     0,
		{Bps: 1e9}:                             0,
		{RTT: time.Second}:                     0,
		{Bps: 1e8, RTT: 40 * time.Millisecond}: 625_000,
		{Bps: 1e300, RTT: time.Hour}:           1<<30 - 1,
		{Bps: -1, RTT: time.Hour}:              0,
	} {
		if got := path.Window(); got != want {
			t.Errorf("%+v: window %d, want %d", path, got, want)
		}
	}
}

func TestBudget_NeverExceeded(t *testing.T) {
	b := NewBudget(10 << 20)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 200 {
				got := b.take(4<<20, 64<<10)
				if in := b.InUse(); in > 10<<20 || got != 0 && got < 64<<10 {
					t.Errorf("worker %d: took %d, %d in use", i, got, in)
				}
				b.release(got)
			}
		}()
	}
	wg.Wait()
	if b.InUse() != 0 {
		t.Errorf("%d in use at the end", b.InUse())
	}
}

// ceilings returns the kernel's limits of buffers.
func ceilings(t *testing.T) socket.Ceilings {
	t.Helper()
	testenv.Need(t, testenv.Linux)
	c, err := socket.ReadCeilings()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func listen(t *testing.T, cfg Config) net.Listener {
	t.Helper()
	lc := ListenConfig{Config: cfg}
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func granted(t *testing.T, c net.Conn) (send, receive int) {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err == nil {
		send, receive, err = socket.Buffers(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	return send, receive
}

func TestDialer_BuffersBeforeHandshake(t *testing.T) {
	limits := ceilings(t)
	path := Path{Bps: 10e9, RTT: 100 * time.Millisecond} // 156 MB
	force := os.Geteuid() == 0
	l := listen(t, Config{Path: path, Force: force})
	accepted := make(chan net.Conn, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			accepted <- c
		}
	}()
	d := Dialer{Config: Config{Path: path, Force: force}}
	c, err := d.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := <-accepted
	defer s.Close()
	for name, conn := range map[string]net.Conn{"dialled": c, "accepted": s} {
		send, receive := granted(t, conn)
		want := func(now, automatic, most int) int {
			if force {
				most = forcedMax
			}
			if most <= automatic {
				return now // automatic
			}
			return min(limits.Factor*path.Window(), most)
		}
		wantSend, wantReceive := want(send, limits.AutoSend, limits.Send), want(receive, limits.AutoReceive, limits.Receive)
		if send != wantSend || receive != wantReceive {
			t.Errorf("%s: granted %d and %d, want %d and %d", name, send, receive, wantSend, wantReceive)
		}
	}
}

func TestDialer_ZeroConfig(t *testing.T) {
	ceilings(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	plain, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	var d Dialer
	ours, err := d.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	ps, pr := granted(t, plain)
	if s, r := granted(t, ours); s != ps || r != pr {
		t.Errorf("granted %d and %d, net.Dialer's %d and %d", s, r, ps, pr)
	}
}

// TestBudget_Shared runs in a synctest bubble: sockets are real, and the tuners sample by its clock.
func TestBudget_Shared(t *testing.T) {
	ceilings(t)
	synctest.Test(t, shareABudget)
}

func shareABudget(t *testing.T) {
	const total = 1 << 20
	server, clients := NewBudget(total), NewBudget(total)
	l := listen(t, Config{Budget: server})
	accepted := make(chan net.Conn, 100)
	refused := make(chan error, 100)
	go func() {
		for {
			c, err := l.Accept()
			var temporary interface{ Temporary() bool }
			switch {
			case err == nil:
				accepted <- c
			case errors.As(err, &temporary) && temporary.Temporary():
				refused <- err
			default:
				close(accepted)
				return
			}
		}
	}()
	d := Dialer{Config: Config{Budget: clients}}
	var open []net.Conn
	sum := 0
	for {
		c, err := d.Dial("tcp", l.Addr().String())
		if err != nil {
			if !errors.Is(err, ErrBudget) {
				t.Fatal(err)
			}
			break
		}
		open = append(open, c)
		send, receive := granted(t, c)
		sum += send + receive
	}
	if len(open) < 5 || sum > total || clients.InUse() > total || server.InUse() > total {
		t.Errorf("%d connections hold %d bytes, charged %d; the server's %d", len(open), sum, clients.InUse(), server.InUse())
	}
	plain, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := <-refused; !errors.Is(err, ErrBudget) {
		t.Errorf("the server refused with %v", err)
	}
	if _, err := plain.Read(make([]byte, 1)); err == nil {
		t.Error("the refused connection is open")
	}
	plain.Close()
	for _, c := range open {
		c.Close()
	}
	l.Close()
	for c := range accepted {
		c.Close()
	}
	time.Sleep(maxInterval)
	synctest.Wait()
	if clients.InUse()+server.InUse() > 0 {
		t.Errorf("%d and %d still charged %v after all were closed", clients.InUse(), server.InUse(), maxInterval)
	}
}

func TestBudget_FailedDials(t *testing.T) {
	ceilings(t)
	b := NewBudget(1 << 20)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(testenv.FreePort(t, 1)))
	d := Dialer{Config: Config{Budget: b}}
	if c, err := d.Dial("tcp", address); err == nil {
		c.Close()
		t.Fatalf("somebody listens on %s", address)
	}
	if b.InUse() != 0 {
		t.Errorf("%d charged", b.InUse())
	}
}

func TestListenConfig_OtherNetworks(t *testing.T) {
	path := t.TempDir() + "/s"
	var lc ListenConfig
	l, err := lc.Listen(context.Background(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			io.WriteString(c, "hello")
			c.Close()
		}
	}()
	var d Dialer
	c, err := d.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if text, err := io.ReadAll(c); string(text) != "hello" {
		t.Errorf("%q, %v", text, err)
	}
}
