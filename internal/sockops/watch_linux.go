package sockops

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

const (
	maxListed  = 10_000  // connections in a report
	maxSamples = 1 << 18 // over all connections, about 64 MB
)

// watcher follows the connections of one cgroup, on one goroutine.
type watcher struct {
	cfg     Config
	group   *cgroup
	most    ceilings
	entered *ebpf.Map
	sockets *sockdiag.Follower
	follow  map[uint64]*followed
	samples int
	missed  bool
	refused error // the reason why buffers above the ceilings were not forced
}

// followed is a connection with the times of its first and last sample.
type followed struct {
	Connection
	started, read, ended time.Duration // CLOCK_MONOTONIC; 0: not yet
	toForce              bool          // buffers above the ceilings are not yet forced
}

func newWatcher(group *cgroup, entered *ebpf.Map, cfg Config, most ceilings) (*watcher, error) {
	sockets, err := sockdiag.Follow("")
	if err != nil {
		return nil, err
	}
	sockets.InCgroup(group.id)
	for _, r := range cfg.Rules {
		if send, receive := most.above(r.Socket); send > 0 || receive > 0 {
			cfg.Every = min(cfg.Every, 10*time.Millisecond) // force soon after the handshake
		}
	}
	return &watcher{cfg: cfg, group: group, most: most, entered: entered, sockets: sockets,
		follow: map[uint64]*followed{}}, nil
}

// watch follows the connections until done is readable or closed.
func (w *watcher) watch(done int) error {
	fds := []unix.PollFd{{Fd: int32(done), Events: unix.POLLIN}, {Fd: int32(w.sockets.Ends.FD()), Events: unix.POLLIN}}
	next := monotonic()
	for {
		wait := max(next-monotonic(), 0)
		fds[0].Revents = 0
		fds[1].Revents = 0
		if _, err := unix.Poll(fds, int((wait+time.Millisecond-1)/time.Millisecond)); err != nil &&
			!errors.Is(err, unix.EINTR) {
			return fmt.Errorf("poll: %w", err)
		}
		if fds[1].Revents != 0 {
			if err := w.takeEnds(); err != nil {
				return err
			}
		}
		if now := monotonic(); now >= next {
			next = now + w.cfg.Every
			if err := w.read(); err != nil {
				return err
			}
		}
		if fds[0].Revents != 0 {
			return nil
		}
	}
}

// finish takes the last samples. The kernel's worker reports ended sockets with a delay, so finish waits for it, up
// to a limit.
func (w *watcher) finish() error {
	deadline := monotonic() + 500*time.Millisecond
	for {
		if err := w.takeEnds(); err != nil {
			return err
		}
		start := monotonic()
		if err := w.read(); err != nil {
			return err
		}
		open := slices.ContainsFunc(w.all(), func(f *followed) bool { return f.ended == 0 && f.read < start })
		wait := deadline - monotonic()
		if !open || wait <= 0 {
			return nil
		}
		fds := []unix.PollFd{{Fd: int32(w.sockets.Ends.FD()), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, int(wait/time.Millisecond)+1); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("poll: %w", err)
		}
	}
}

func (w *watcher) all() []*followed {
	all := make([]*followed, 0, len(w.follow))
	for _, f := range w.follow {
		all = append(all, f)
	}
	return all
}

// takeEntered moves connections that the sock_ops program recorded to the followed ones.
func (w *watcher) takeEntered() error {
	var key uint64
	var value []byte
	var taken []uint64
	entries := w.entered.Iterate()
	for entries.Next(&key, &value) {
		e, err := parseEstablished(value)
		if err != nil {
			return err
		}
		taken = append(taken, key)
		if len(w.follow) >= maxListed {
			w.missed = true
			continue
		}
		w.follow[key] = w.begin(e)
	}
	if err := entries.Err(); err != nil && !errors.Is(err, ebpf.ErrIterationAborted) {
		return fmt.Errorf("connections map: %w", err)
	}
	w.missed = w.missed || len(taken) >= maxFollowed
	for _, key := range taken {
		if err := w.entered.Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("connections map: %w", err)
		}
	}
	return nil
}

func (w *watcher) begin(e established) *followed {
	f := &followed{started: e.at, Connection: Connection{
		Opened: e.opened, Rule: e.rule, AskedSend: e.askedSend, AskedReceive: e.askedReceive,
		Stream: transfer.Stream{Local: e.local, Remote: e.remote, Congestion: e.congestion},
	}}
	send := &f.Stream.SendBuffer
	receive := &f.Stream.ReceiveBuffer
	if e.rule >= 0 && e.rule < len(w.cfg.Rules) {
		to := w.cfg.Rules[e.rule].Socket
		send.Requested = to.SendBuffer
		receive.Requested = to.ReceiveBuffer
		above, aboveToo := w.most.above(to)
		f.toForce = above > 0 || aboveToo > 0
	}
	if !w.cfg.IgnoreProgramBuffers {
		send.Requested = cmp.Or(send.Requested, e.askedSend)
		receive.Requested = cmp.Or(receive.Requested, e.askedReceive)
	}
	send.Granted = e.sendGranted
	receive.Granted = e.recvGranted
	f.clip()
	return f
}

// read takes a sample of every open connection.
func (w *watcher) read() error {
	if err := w.takeEntered(); err != nil {
		return err
	}
	now := monotonic()
	const ask = sockdiag.AskInfo | sockdiag.AskCongestion | sockdiag.AskMemory
	err := w.sockets.Dump(sockdiag.NotListening, ask, func(s *sockdiag.Socket) {
		if f := w.follow[s.Cookie]; f != nil && f.ended == 0 {
			f.read = now
			w.sample(f, s, now)
			w.force(f, s)
		}
	})
	if w.samples > maxSamples {
		w.thin()
	}
	return err
}

// force sets a connection's buffers above the ceilings, once.
func (w *watcher) force(f *followed, s *sockdiag.Socket) {
	if !f.toForce || s.Inode == 0 {
		return
	}
	send, receive := w.most.above(w.cfg.Rules[f.Rule].Socket)
	found, err := force(w.group.path, s.Inode, send, receive)
	f.toForce = !found && err == nil
	if found && err == nil {
		f.Stream.SendBuffer.Forced = send > 0
		f.Stream.ReceiveBuffer.Forced = receive > 0
	}
	w.refused = cmp.Or(w.refused, err)
}

// clip records whether the system granted less than requested. Linux grants twice the request for its overhead.
func (f *followed) clip() {
	for _, b := range []*transfer.Buffer{&f.Stream.SendBuffer, &f.Stream.ReceiveBuffer} {
		b.Clipped = b.Granted < 2*b.Requested
	}
}

// takeEnds takes the kernel's last counters of ended sockets. Entries precede these messages, so it takes the
// entries after reading them.
func (w *watcher) takeEnds() error {
	now := monotonic()
	var ended []*sockdiag.Socket
	if err := w.sockets.Ends.Take(func(s *sockdiag.Socket) { ended = append(ended, s.Clone()) }); err != nil {
		return err
	}
	if err := w.takeEntered(); err != nil {
		return err
	}
	for _, s := range ended {
		if f := w.follow[s.Cookie]; f != nil && f.ended == 0 {
			f.ended = now
			f.Final = len(s.Info) > 0
			w.sample(f, s, now)
		}
	}
	return nil
}

func (w *watcher) sample(f *followed, s *sockdiag.Socket, now time.Duration) {
	if len(s.Info) == 0 {
		return
	}
	r := queueSample{Sample: transfer.Sample{At: now - f.started, Have: transfer.HaveQueue},
		queues: live.Queues{Unread: int64(s.ReadQueue), Unacked: int64(s.WriteQueue)}}
	idle := socket.DecodeLinux(s.Info, &r.Sample)
	f.heard = max(f.heard, now-idle-f.started)
	send := &f.Stream.SendBuffer
	receive := &f.Stream.ReceiveBuffer
	if s.HasMemory && f.ended == 0 {
		r.queues.SendQueued = int64(s.Memory.SendQueued)
		r.queues.SendBuffer = int64(s.Memory.SendBuffer)
		send.Granted = int(s.Memory.SendBuffer)
		receive.Granted = int(s.Memory.ReceiveBuffer)
		f.clip()
	}
	send.Effective = max(send.Effective, int(r.InFlight))
	receive.Effective = max(receive.Effective, int(r.ReceiveWnd))
	if len(s.Congestion) > 0 && string(s.Congestion) != f.Stream.Congestion {
		f.Stream.Congestion = string(s.Congestion)
	}
	if f.ended == 0 || f.Stream.Handshake == nil {
		f.Stream.Handshake = socket.HandshakeLinux(s.Info)
	}
	f.samples = append(f.samples, r)
	w.samples++
}

// thin drops every second sample of long series to limit memory.
func (w *watcher) thin() {
	w.samples = 0
	for _, f := range w.follow {
		if all := f.samples; len(all) > 8 {
			kept := all[:0]
			for i, r := range all {
				if i%2 == 0 || i == len(all)-1 {
					kept = append(kept, r)
				}
			}
			f.samples = kept
		}
		w.samples += len(f.samples)
	}
}

// connections returns the followed connections, oldest first.
func (w *watcher) connections() []Connection {
	all := w.all()
	slices.SortFunc(all, func(a, b *followed) int { return cmp.Compare(a.started, b.started) })
	out := make([]Connection, len(all))
	for i, f := range all {
		end := f.ended
		if end == 0 {
			end = f.read
		}
		if end > f.started {
			f.Lasted = end - f.started
		}
		out[i] = f.Connection
	}
	return out
}

// monotonic is the clock that bpf_ktime_get_ns reads.
func monotonic() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail with a clock that exists
	return time.Duration(ts.Nano())
}
