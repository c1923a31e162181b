package server

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// windows are further listeners on the server's port, for connections that want a small
// window from the SYN on. They are never
// closed before the server is: the kernel counts listeners by their place in a row.
type windows struct {
	mu     sync.Mutex // guards what follows
	group  []*net.TCPListener
	chosen map[int]socket.Choice // by place in group; absent: free
	accept func(*net.TCPListener)
}

const mostWindows = 16

var errNoWindow = errors.New("as many windows at a time as this server holds")

// Window gives connections from a host a receive buffer of so many bytes from the SYN
// on, until release is called. Config.ShareWindows must be set.
func (s *Server) Window(from netip.Addr, bytes int) (release func(), err error) {
	return s.window(socket.Choice{From: from}, bytes)
}

func (s *Server) window(c socket.Choice, bytes int) (release func(), err error) {
	w := &s.windows
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.accept == nil {
		return nil, errNoWindow
	}
	place, err := w.free(s.listener)
	if err != nil {
		return nil, err
	}
	if err := socket.SetListenBuffer(w.group[place], bytes); err != nil {
		return nil, err
	}
	c.Index = place
	w.chosen[place] = c
	if err := w.choose(s.listener); err != nil {
		delete(w.chosen, place)
		return nil, err
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.chosen, place)
		w.choose(s.listener)
	}, nil
}

// free answers the place of a listener that nobody uses.
func (w *windows) free(first *net.TCPListener) (int, error) {
	for place := 1; place < len(w.group); place++ {
		if _, used := w.chosen[place]; !used {
			return place, nil
		}
	}
	if len(w.group) > mostWindows {
		return 0, errNoWindow
	}
	l, err := socket.Listen(context.Background(), first.Addr().String(), socket.Options{SharePort: true})
	if err != nil {
		return 0, err
	}
	w.group = append(w.group, l)
	w.accept(l)
	return len(w.group) - 1, nil
}

func (w *windows) choose(first *net.TCPListener) error {
	choices := slices.Collect(maps.Values(w.chosen))
	// Those for some ports only come first: iperf3's clients are known by address alone.
	slices.SortFunc(choices, func(a, b socket.Choice) int {
		return cmp.Or(len(b.Ports)-len(a.Ports), a.Index-b.Index)
	})
	return socket.ChooseListener(first, choices)
}

// start lets windows be opened; accept takes their connections.
func (w *windows) start(first *net.TCPListener, accept func(*net.TCPListener)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.group = []*net.TCPListener{first}
	w.chosen = map[int]socket.Choice{}
	w.accept = accept
}

func (w *windows) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accept = nil
	for _, l := range w.group[min(1, len(w.group)):] {
		l.Close()
	}
}

// listenShared is listen for a port that windows may be opened on. Sharing would also
// let a second server in unnoticed, so it is seen first that nobody is there.
func listenShared(ctx context.Context, address string) (*net.TCPListener, error) {
	if _, port, _ := net.SplitHostPort(address); port != "0" {
		alone, err := socket.Listen(ctx, address, socket.Options{})
		if err != nil {
			return nil, err
		}
		alone.Close()
	}
	return socket.Listen(ctx, address, socket.Options{SharePort: true})
}
