package socklist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

var (
	iphlpapi = windows.NewLazySystemDLL("iphlpapi.dll")
	getTable = iphlpapi.NewProc("GetExtendedTcpTable")
	// for IPv4, for IPv6
	getCounts = [2]*windows.LazyProc{iphlpapi.NewProc("GetPerTcpConnectionEStats"),
		iphlpapi.NewProc("GetPerTcp6ConnectionEStats")}
	setCounts = [2]*windows.LazyProc{iphlpapi.NewProc("SetPerTcpConnectionEStats"),
		iphlpapi.NewProc("SetPerTcp6ConnectionEStats")}
)

// List reads the connections that Windows has, and the statistics that it keeps of them from when they are turned
// on.
type List struct {
	kept  kept[ends, counted]
	table []byte
	keys  uint64
}

// ends name a connection while it is open. The scope is of link-local addresses.
type ends struct {
	local, remote netip.AddrPort
	scope         uint32
	pid           int
}

// counted is what is remembered of a connection.
type counted struct {
	key             uint64
	row             row
	ours            uint // groups that were turned on here, by their bits
	acked, received uint64
	resent          int64
	resentWas       uint32
}

// Open returns a NotCountedError unless it may let Windows count.
func Open(o Options) (*List, error) {
	for _, p := range append(append([]*windows.LazyProc{getTable}, getCounts[:]...), setCounts[:]...) {
		if err := p.Find(); err != nil {
			return nil, fmt.Errorf("extended statistics of TCP connections: %w: %w", socket.ErrNotSupported, err)
		}
	}
	if !o.Count {
		return nil, NotCountedError{}
	}
	return &List{}, nil
}

// Read calls each with every wanted connection. Its argument is valid only during the call. untold is the number of
// connections for which the system returned no counters. Without the rights of an Administrator the error is
// fs.ErrPermission.
func (l *List) Read(want Want, each func(*Socket)) (untold int, err error) {
	l.kept.begin()
	for family, of := range [2]func([]byte) row{rowOfIPv4, rowOfIPv6} {
		rows, err := l.rows(family)
		if err != nil {
			return untold, err
		}
		for size := rowSizes[family]; len(rows) >= size; rows = rows[size:] {
			r := of(rows[:size])
			if !r.carries() || !want(r.local, r.remote) {
				continue
			}
			switch err := l.read(r, each); {
			case errors.Is(err, windows.ERROR_ACCESS_DENIED):
				return untold, err
			case err != nil && !errors.Is(err, windows.ERROR_NOT_FOUND): // the latter has ended since it was listed
				untold++
			}
		}
	}
	l.kept.end()
	return untold, nil
}

// Retransmissions reports whether this system counts them.
func (*List) Retransmissions() bool { return true }

// rowSizes are of MIB_TCPROW_OWNER_PID and of MIB_TCP6ROW_OWNER_PID.
var rowSizes = [2]int{24, 56}

// rows are those of the table of connections (TCP_TABLE_OWNER_PID_CONNECTIONS).
func (l *List) rows(family int) ([]byte, error) {
	const connections = 4
	families := [2]uintptr{windows.AF_INET, windows.AF_INET6}
	for range 8 { // it may grow in between
		size := uint32(len(l.table))
		status, _, _ := getTable.Call(uintptr(unsafe.Pointer(unsafe.SliceData(l.table))), uintptr(unsafe.Pointer(&size)), 0,
			families[family], connections, 0)
		switch windows.Errno(status) {
		case 0:
			n := int(binary.LittleEndian.Uint32(l.table))
			rows := l.table[4:]
			return rows[:min(n*rowSizes[family], len(rows))], nil
		case windows.ERROR_INSUFFICIENT_BUFFER:
			l.table = make([]byte, size+size/4+64)
		default:
			return nil, fmt.Errorf("GetExtendedTcpTable: %w", windows.Errno(status))
		}
	}
	return nil, errors.New("GetExtendedTcpTable: the table grew faster than it could be read")
}

// row is one connection of the table.
type row struct {
	ends
	state uint32
	v6    int
	named [52]byte // MIB_TCPROW or MIB_TCP6ROW, by which its statistics are asked for
}

func rowOfIPv4(b []byte) (r row) {
	copy(r.named[:], b[:20])
	r.state = binary.LittleEndian.Uint32(b)
	r.pid = int(binary.LittleEndian.Uint32(b[20:]))
	r.local = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[8:]))
	r.remote = netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[12:16])), binary.BigEndian.Uint16(b[16:]))
	return r
}

// rowOfIPv6 puts the state first, where MIB_TCP6ROW has it.
func rowOfIPv6(b []byte) (r row) {
	r.v6 = 1
	copy(r.named[:4], b[48:52])
	copy(r.named[4:], b[:48])
	r.scope = binary.LittleEndian.Uint32(b[16:])
	r.state = binary.LittleEndian.Uint32(b[48:])
	r.pid = int(binary.LittleEndian.Uint32(b[52:]))
	r.local = netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[:16])).Unmap(), binary.BigEndian.Uint16(b[20:]))
	r.remote = netip.AddrPortFrom(netip.AddrFrom16([16]byte(b[24:40])).Unmap(), binary.BigEndian.Uint16(b[44:]))
	return r
}

// States of a connection (MIB_TCP_STATE).
const (
	established = 5
	finWait1    = 6
	finWait2    = 7
	closeWait   = 8
	closing     = 9
	lastAck     = 10
)

// carries says that payload can move.
func (r *row) carries() bool {
	switch r.state {
	case established, finWait1, finWait2, closeWait, closing, lastAck:
		return true
	}
	return false
}

// group is one of the groups of statistics (TCP_ESTATS_TYPE).
type group struct {
	number uintptr
	into   unsafe.Pointer
	size   uintptr
}

func (e *estats) groups() [6]group {
	return [...]group{{1, unsafe.Pointer(&e.data), unsafe.Sizeof(e.data)},
		{2, unsafe.Pointer(&e.congestion), unsafe.Sizeof(e.congestion)}, {3, unsafe.Pointer(&e.path), unsafe.Sizeof(e.path)},
		{4, unsafe.Pointer(&e.buffer), unsafe.Sizeof(e.buffer)}, {5, unsafe.Pointer(&e.receiver), unsafe.Sizeof(e.receiver)},
		{6, unsafe.Pointer(&e.peer), unsafe.Sizeof(e.peer)}}
}

// errNotOn reports that a group has no values although it was turned on.
var errNotOn = errors.New("SetPerTcpConnectionEStats turned nothing on")

func (l *List) read(r row, each func(*Socket)) error {
	var e estats
	c := l.kept.get(r.ends)
	c.row = r
	for _, g := range e.groups() {
		on, err := get(&r, g)
		if err == nil && !on {
			err = set(&r, g.number, true)
			if err == nil {
				c.ours |= 1 << g.number
				on, err = get(&r, g)
			}
		}
		if err != nil {
			return err
		}
		if !on {
			return errNotOn
		}
	}
	resent := e.path.BytesRetrans
	if c.key == 0 || e.data.ThruBytesAcked < c.acked || e.data.ThruBytesReceived < c.received {
		l.keys++
		*c = counted{key: l.keys, row: r, ours: c.ours, resent: int64(resent), resentWas: resent}
	}
	c.acked = e.data.ThruBytesAcked
	c.received = e.data.ThruBytesReceived
	c.resent = c.resent + int64(resent-c.resentWas)
	c.resentWas = resent
	s := Socket{Key: c.key, Local: r.local, Remote: r.remote, PID: r.pid, Established: r.state == established,
		PeerClosed: r.state == closeWait || r.state == closing || r.state == lastAck}
	e.fill(&s, c.resent)
	each(&s)
	return nil
}

// get reads a group of a connection's statistics, and whether they are on.
func get(r *row, g group) (bool, error) {
	var on byte
	status, _, _ := getCounts[r.v6].Call(uintptr(unsafe.Pointer(&r.named)), g.number, uintptr(unsafe.Pointer(&on)), 0, 1,
		0, 0, 0, uintptr(g.into), 0, g.size)
	if errno := windows.Errno(status); errno != 0 {
		return false, fmt.Errorf("GetPerTcpConnectionEStats: %w", errno)
	}
	return on != 0, nil
}

// set turns a group of a connection's statistics on or off.
func set(r *row, number uintptr, on bool) error {
	status, _, _ := setCounts[r.v6].Call(uintptr(unsafe.Pointer(&r.named)), number, uintptr(unsafe.Pointer(&on)), 0, 1, 0)
	if err := windows.Errno(status); err != 0 {
		return fmt.Errorf("SetPerTcpConnectionEStats: %w", err)
	}
	return nil
}

// Close turns off what was turned on. It may be called again.
func (l *List) Close() error {
	var errs []error
	for _, h := range l.kept.all {
		for number := uintptr(1); number <= 6; number++ {
			if h.it.ours&(1<<number) == 0 {
				continue
			}
			if err := set(&h.it.row, number, false); err != nil && !errors.Is(err, windows.ERROR_NOT_FOUND) {
				errs = append(errs, err)
			}
		}
		h.it.ours = 0
	}
	return errors.Join(errs...)
}

// Program returns the name of a process's file; "" where it is not known.
func Program(pid int) string {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return ""
	}
	defer windows.CloseHandle(h)
	path := make([]uint16, 1024)
	n := uint32(len(path))
	if windows.QueryFullProcessImageName(h, 0, &path[0], &n) != nil {
		return ""
	}
	return filepath.Base(windows.UTF16ToString(path[:n]))
}
