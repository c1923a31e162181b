package lab

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// tun is one end's device. Each packet has a virtio header in front.
type tun struct{ fd int }

// virtioHeader is the length of struct virtio_net_hdr (linux/virtio_net.h): flags, gso_type (1 byte each), hdr_len,
// gso_size, csum_start, csum_offset (2 bytes each, native byte order).
const virtioHeader = 10

const (
	needsChecksum = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM
	gsoNone       = 0
	gsoTCP4       = 1
	gsoTCP6       = 4
	gsoECN        = 0x80
)

const tunPath = "/dev/net/tun"

// openTUN makes a TUN device in the calling thread's network namespace without checksums and with segmentation
// offload.
func openTUN(name string) (*tun, error) {
	fd, err := attachTUN(name, unix.IFF_VNET_HDR)
	if err != nil {
		return nil, err
	}
	const offloads = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloads); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("TUN device: offloads: %w", err)
	}
	return &tun{fd}, nil
}

// attachTUN makes a TUN device in the calling thread's network namespace and returns its descriptor.
func attachTUN(name string, flags uint16) (int, error) {
	fd, err := unix.Open(tunPath, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, tunRefused(err)
	}
	request, err := unix.NewIfreq(name)
	if err != nil {
		unix.Close(fd)
		return 0, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | flags)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		unix.Close(fd)
		return 0, fmt.Errorf("TUN device: %w", err)
	}
	return fd, nil
}

func tunRefused(err error) error {
	message := fmt.Sprintf("opening %s: %v", tunPath, err)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENODEV), errors.Is(err, unix.ENXIO):
		return &Failed{message, "the kernel's TUN driver is not there: sudo modprobe tun"}
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return &Failed{message, "let everybody open it, as most distributions do: sudo chmod 0666 " + tunPath +
			"; or run as root"}
	}
	return errors.New(message)
}
