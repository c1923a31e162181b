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
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// windows are further listeners on the server's port, for connections with a window or an MSS from the SYN on. They
// stay open as long as the server, because the kernel selects listeners by index.
type windows struct {
	mu     sync.Mutex // guards the fields below
	group  []*net.TCPListener
	preset []preset              // by place in group: a place serves one preset only
	chosen map[int]socket.Choice // by place in group; absent: free
	accept func(*net.TCPListener)
}

// preset has the options that were ever set on a listener. Linux cannot undo them while it listens.
type preset struct{ buffer, clamp, mss bool }

const maxWindows = 16

var errNoWindow = errors.New("all windows of this server are in use")

// Window sets the receive buffer of a host's new connections from the SYN on, until release. It requires
// Config.ShareWindows.
func (s *Server) Window(from netip.Addr, bytes int) (release func(), err error) {
	return s.window(socket.Choice{From: from}, socket.Options{Socket: transfer.Socket{ReceiveBuffer: bytes}})
}

func (s *Server) window(c socket.Choice, o socket.Options) (release func(), err error) {
	w := &s.windows
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.accept == nil {
		return nil, errNoWindow
	}
	place, err := w.free(s.listener, preset{o.ReceiveBuffer > 0, o.Clamp > 0, o.MSS > 0})
	if err != nil {
		return nil, err
	}
	if err := socket.SetListener(w.group[place], o); err != nil {
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

// free returns the place of an unused listener for a preset.
func (w *windows) free(first *net.TCPListener, p preset) (int, error) {
	for place := 1; place < len(w.group); place++ {
		if _, used := w.chosen[place]; !used && w.preset[place] == p {
			return place, nil
		}
	}
	if len(w.group) > maxWindows {
		return 0, errNoWindow
	}
	l, err := socket.Listen(context.Background(), first.Addr().String(), socket.Options{SharePort: true})
	if err != nil {
		return 0, err
	}
	w.group = append(w.group, l)
	w.preset = append(w.preset, p)
	w.accept(l)
	return len(w.group) - 1, nil
}

func (w *windows) choose(first *net.TCPListener) error {
	choices := slices.Collect(maps.Values(w.chosen))
	// Listeners for certain ports come first, because iperf3's clients are known by address only.
	slices.SortFunc(choices, func(a, b socket.Choice) int {
		return cmp.Or(len(b.Ports)-len(a.Ports), a.Index-b.Index)
	})
	return socket.ChooseListener(first, choices)
}

// start enables windows. accept receives their connections.
func (w *windows) start(first *net.TCPListener, accept func(*net.TCPListener)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.group = []*net.TCPListener{first}
	w.preset = []preset{{}}
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

// listenShared listens on a port that windows may share. It first checks that the port is free, because sharing
// would admit a second server unnoticed.
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
