package socket

import (
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func flowControl(o FlowOptions) func(network, address string, c syscall.RawConn) error {
	return func(network, _ string, c syscall.RawConn) error {
		var err error
		if cerr := c.Control(func(fd uintptr) {
			err = o.Route.Bind(fd, strings.HasSuffix(network, "6"))
			if err == nil {
				err = applyFlow(int(fd), o)
			}
		}); cerr != nil {
			return cerr
		}
		return err
	}
}

func applyFlow(fd int, o FlowOptions) error {
	if o.Local.IsValid() {
		if err := setInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, "SO_REUSEADDR", 1); err != nil {
			return err
		}
	}
	for _, b := range []struct {
		name   string
		option int
	}{{"SO_SNDBUF", unix.SO_SNDBUF}, {"SO_RCVBUF", unix.SO_RCVBUF}} {
		if o.Buffer > 0 {
			if err := setInt(fd, unix.SOL_SOCKET, b.option, b.name, o.Buffer); err != nil {
				return err
			}
		}
	}
	if o.TOS > 0 {
		if err := setTrafficClass(fd, o.TOS); err != nil {
			return err
		}
	}
	if o.DontFragment {
		err := setInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, "IP_MTU_DISCOVER", unix.IP_PMTUDISC_DO)
		if unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO) != nil && err != nil {
			return err
		}
	}
	return nil
}

// canOffload switches UDP_GRO on and says whether the kernel knows both offloads.
func (f *Flow) canOffload() bool {
	raw, err := f.conn.SyscallConn()
	if err != nil {
		return false
	}
	known := false
	raw.Control(func(fd uintptr) {
		_, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_SEGMENT)
		known = err == nil && unix.SetsockoptInt(int(fd), unix.IPPROTO_UDP, unix.UDP_GRO, 1) == nil
	})
	if known {
		f.control = make([]byte, unix.CmsgSpace(2))
		h := (*unix.Cmsghdr)(unsafe.Pointer(&f.control[0]))
		h.Level = unix.IPPROTO_UDP
		h.Type = unix.UDP_SEGMENT
		h.SetLen(unix.CmsgLen(2))
	}
	return known
}

func (f *Flow) sendBatch(batch []byte, size int) error {
	*(*uint16)(unsafe.Pointer(&f.control[unix.CmsgLen(0)])) = uint16(size)
	_, _, err := f.conn.WriteMsgUDPAddrPort(batch, f.control, netip.AddrPort{})
	return err
}

func cannotSegment(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EIO) || errors.Is(err, unix.EMSGSIZE)
}

// trainSize returns the size in UDP_GRO's control message, 0 for a single datagram.
func trainSize(control []byte) int {
	for len(control) >= unix.CmsgLen(0) {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&control[0]))
		if int(h.Len) < unix.CmsgLen(0) || int(h.Len) > len(control) {
			return 0
		}
		if h.Level == unix.IPPROTO_UDP && h.Type == unix.UDP_GRO && int(h.Len) >= unix.CmsgLen(4) {
			return int(*(*int32)(unsafe.Pointer(&control[unix.CmsgLen(0)])))
		}
		control = control[min(unix.CmsgSpace(int(h.Len)-unix.CmsgLen(0)), len(control)):]
	}
	return 0
}

// drops reads SO_MEMINFO (Linux 4.12): nine numbers of 32 bits, SK_MEMINFO_DROPS the last.
func (f *Flow) drops() (n int64, known bool) {
	raw, err := f.conn.SyscallConn()
	if err != nil {
		return 0, false
	}
	const drops = 8
	var info [drops + 1]uint32
	size := uint32(unsafe.Sizeof(info))
	err = raw.Control(func(fd uintptr) {
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
		known = errno == 0 && uintptr(size) == unsafe.Sizeof(info)
	})
	return int64(info[drops]), known && err == nil
}
