package drops

import (
	"encoding/binary"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxStatistics limits a driver's counters; mlx5 has some thousands with many queues.
const maxStatistics = 1 << 14

// driverStatistics returns a driver's own counters by name; nil if it has none.
func driverStatistics(device string) map[string]uint64 {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	const (
		strings    = 1  // ETH_SS_STATS
		nameLength = 32 // ETH_GSTRING_LEN
		setInfo    = 16 // struct ethtool_sset_info
		setHeader  = 12 // struct ethtool_gstrings
		header     = 8  // struct ethtool_stats
	)
	info := make([]byte, setInfo+4)
	order := binary.NativeEndian
	order.PutUint32(info, unix.ETHTOOL_GSSET_INFO)
	order.PutUint64(info[8:], 1<<strings)
	if !ethtool(fd, device, info) || order.Uint64(info[8:]) == 0 {
		return nil
	}
	n := int(order.Uint32(info[setInfo:]))
	if n == 0 || n > maxStatistics {
		return nil
	}
	room := 2*n + 64 // the kernel writes as many as there are then; a driver adds some with a queue
	names := make([]byte, setHeader+room*nameLength)
	order.PutUint32(names, unix.ETHTOOL_GSTRINGS)
	order.PutUint32(names[4:], strings)
	values := make([]byte, header+room*8)
	order.PutUint32(values, unix.ETHTOOL_GSTATS)
	if !ethtool(fd, device, names) || !ethtool(fd, device, values) {
		return nil
	}
	if order.Uint32(names[8:]) != uint32(n) || order.Uint32(values[4:]) != uint32(n) {
		return nil
	}
	all := make(map[string]uint64, n)
	for i := range n {
		name := names[setHeader+i*nameLength:][:nameLength]
		all[unix.ByteSliceToString(name)] = order.Uint64(values[header+i*8:])
	}
	return all
}

// ethtool queries a driver (SIOCETHTOOL). It returns false if the driver does not support the query.
func ethtool(fd int, device string, data []byte) bool {
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&data[0])}
	copy(request.name[:unix.IFNAMSIZ-1], device)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	runtime.KeepAlive(data)
	return errno == 0
}
