package waits

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestOfSeveral waits for several descriptors at once in this process, by each of the calls.
func TestOfSeveral(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	file, err := client.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	pipe, connection := int(r.Fd()), int(file.Fd())
	const each = 200 // ms
	poll := func(fds ...int) func() {
		return func() {
			var all []unix.PollFd
			for _, fd := range fds {
				all = append(all, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			}
			_, _ = unix.Poll(all, each) // the tests look at it from outside
		}
	}
	for name, c := range map[string]struct {
		wait func()
		want Place
	}{
		"poll":               {poll(connection, pipe), Place{Kind: Process}},
		"a connection alone": {poll(connection), Place{Kind: Peer, Object: l.Addr().String()}},
		"select": {func() {
			var set unix.FdSet
			set.Set(connection)
			set.Set(pipe)
			_, _ = unix.Select(max(connection, pipe)+1, &set, nil, nil, &unix.Timeval{Usec: each * 1000})
		}, Place{Kind: Process}},
		"epoll": {func() {
			instance, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
			if err != nil {
				return
			}
			defer unix.Close(instance)
			for _, fd := range []int{connection, pipe} {
				event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
				_ = unix.EpollCtl(instance, unix.EPOLL_CTL_ADD, fd, &event)
			}
			_, _ = unix.EpollWait(instance, make([]unix.EpollEvent, 1), each)
		}, Place{Kind: Process}},
	} {
		t.Run(name, func(t *testing.T) {
			stop := make(chan struct{})
			var ended sync.WaitGroup
			ended.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						c.wait()
					}
				}
			})
			self := os.Getpid()
			watch := Open()
			watch.Follow(self)
			defer func() { watch.Close(); close(stop); ended.Wait() }()
			has := func(all []Wait) bool {
				return slices.ContainsFunc(all, func(w Wait) bool { return w.Place == c.want })
			}
			for end := time.Now().Add(30 * time.Second); !has(watch.Take(self)); time.Sleep(50 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("never seen")
				}
			}
		})
	}
}

// FuzzParse reads what the kernel might show.
func FuzzParse(f *testing.F) {
	f.Add("230 0x0 0x0 0x7ffe 0x7ffe 0x0 0x0 0x7ffe 0x7fe1")
	f.Add("running")
	f.Add("-1 0x7ffe 0x7fe1")
	f.Add("0100007F:1F90")
	f.Add("0000000000000000FFFF00000100007F:0050")
	f.Fuzz(func(t *testing.T, text string) {
		if n, _ := parseCall(text); n < -1 {
			t.Errorf("call %d", n)
		}
		if a, ok := parseAddress(text); ok && !a.IsValid() {
			t.Errorf("%v", a)
		}
	})
}

// TestParseAddress reads addresses as this host's kernel writes them: words in its byte order.
func TestParseAddress(t *testing.T) {
	for _, want := range []string{"127.0.0.1:8080", "[2001:db8::1]:443", "[::ffff:127.0.0.1]:80"} {
		address := netip.MustParseAddrPort(want)
		raw := address.Addr().AsSlice()
		text := ""
		for i := 0; i < len(raw); i += 4 {
			text += fmt.Sprintf("%08X", binary.NativeEndian.Uint32(raw[i:]))
		}
		text += fmt.Sprintf(":%04X", address.Port())
		got, ok := parseAddress(text)
		if !ok || got.Port() != address.Port() || got.Addr() != address.Addr().Unmap() {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
}
