package socket

import (
	"context"
	"net"
	"net/netip"
	"time"
)

// Flow is a connected UDP socket that carries batches of datagrams of equal size. Where
// the kernel can, a whole batch is sent in one call (UDP_SEGMENT, Linux 4.18) and
// received in one (UDP_GRO, Linux 5.0). One goroutine may send while another receives.
type Flow struct {
	conn    *net.UDPConn
	offload bool
	control []byte // of the batch being sent
	came    [64]byte
}

// FlowOptions is what a Flow is given before it is connected. The zero value leaves
// everything to the system.
type FlowOptions struct {
	// Buffer is what SO_SNDBUF and SO_RCVBUF ask for, in bytes.
	Buffer int
	// TOS is the IP header's traffic class byte.
	TOS int
	// DontFragment sets the bit of that name and lets no fragment leave.
	DontFragment bool
	// Local is the address to send from; valid, it is shared with ListenFlows.
	Local netip.AddrPort
	// LocalPort is the port to send from, of the route's address; 0 lets the system choose.
	LocalPort uint16
	// Route is the way that datagrams leave by.
	Route Route
	// NoOffload sends and receives each datagram by itself.
	NoOffload bool
}

// MaxTrain is how many bytes of payload fit into one batch.
const MaxTrain = 65000

// DialFlow connects to a remote HOST:PORT; nothing is sent.
func DialFlow(ctx context.Context, remote string, o FlowOptions) (*Flow, error) {
	d := net.Dialer{Control: flowControl(o)}
	switch {
	case o.Local.IsValid():
		d.LocalAddr = net.UDPAddrFromAddrPort(o.Local)
	case o.Route.From.IsValid() || o.LocalPort != 0:
		d.LocalAddr = net.UDPAddrFromAddrPort(netip.AddrPortFrom(o.Route.From, o.LocalPort))
	}
	conn, err := d.DialContext(ctx, "udp", remote)
	if err != nil {
		return nil, o.Route.refused(err)
	}
	f := &Flow{conn: conn.(*net.UDPConn)}
	f.offload = !o.NoOffload && f.canOffload()
	return f, nil
}

// ListenFlows opens the socket on which unknown hosts' first datagrams arrive. Flows
// with the same Local address take theirs from it once they are connected.
func ListenFlows(ctx context.Context, address string) (*net.UDPConn, error) {
	lc := net.ListenConfig{Control: flowControl(FlowOptions{Local: netip.AddrPortFrom(netip.IPv6Unspecified(), 0)})}
	conn, err := lc.ListenPacket(ctx, "udp", address)
	if err != nil {
		return nil, err
	}
	return conn.(*net.UDPConn), nil
}

// Buffers returns the granted send and receive buffers.
func (f *Flow) Buffers() (send, receive int, err error) {
	raw, err := f.conn.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	return Buffers(raw)
}

// Remote and Local are the flow's two addresses.
func (f *Flow) Remote() netip.AddrPort { return AddrPort(f.conn.RemoteAddr()) }
func (f *Flow) Local() netip.AddrPort  { return AddrPort(f.conn.LocalAddr()) }

// Batch is how many datagrams of size bytes one Send takes, at least 1.
func (f *Flow) Batch(size int) int {
	const most = 64 // UDP_MAX_SEGMENTS
	if !f.offload || size > MaxTrain {
		return 1
	}
	return max(min(MaxTrain/size, most), 1)
}

// Send sends batch as datagrams of size bytes; the last one may be shorter.
func (f *Flow) Send(batch []byte, size int) error {
	if f.offload && len(batch) > size {
		err := f.sendBatch(batch, size)
		if err == nil || !cannotSegment(err) {
			return err
		}
		f.offload = false // the way out has no checksum offload, or size is beyond its MTU
	}
	for len(batch) > 0 {
		n := min(size, len(batch))
		if _, err := f.conn.Write(batch[:n]); err != nil {
			return err
		}
		batch = batch[n:]
	}
	return nil
}

// Receive waits for datagrams: n bytes of b, each datagram of size bytes but the last, which may be shorter. b should
// have MaxTrain bytes. from is the sender: datagrams that came before the flow was connected can be from anybody.
func (f *Flow) Receive(b []byte) (n, size int, from netip.AddrPort, err error) {
	n, controls, _, from, err := f.conn.ReadMsgUDPAddrPort(b, f.came[:])
	if err != nil {
		return 0, 0, from, err
	}
	size = trainSize(f.came[:controls])
	if size <= 0 {
		size = n
	}
	return n, size, Unmap(from), nil
}

// Drops returns how many received batches the kernel has dropped at this socket; known is false if
// the system does not count them.
func (f *Flow) Drops() (n int64, known bool) { return f.drops() }

// SetDeadline bounds Send and Receive, also running ones.
func (f *Flow) SetDeadline(t time.Time) error { return f.conn.SetDeadline(t) }

// Close releases the socket.
func (f *Flow) Close() error { return f.conn.Close() }
