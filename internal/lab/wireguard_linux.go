package lab

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	wgtun "golang.zx2c4.com/wireguard/tun"
)

const (
	tunnelName = "wg0"
	tunnelPort = 51820
)

// tunnel connects the two hosts by WireGuard over the link. It ends with the engine.
func tunnel(nearHost, farHost *host, mtu int) error {
	nearKey, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	farKey, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	for _, end := range []struct {
		host    *host
		own     *ecdh.PrivateKey
		peer    *ecdh.PublicKey
		outside netip.Addr // the peer's
		way     way
	}{{nearHost, nearKey, farKey.PublicKey(), FarAddr, way{nearInside, farInside}},
		{farHost, farKey, nearKey.PublicKey(), NearAddr, way{farInside, nearInside}}} {
		settings := []string{"private_key=" + hex.EncodeToString(end.own.Bytes()), fmt.Sprintf("listen_port=%d", tunnelPort),
			"public_key=" + hex.EncodeToString(end.peer.Bytes()), fmt.Sprintf("endpoint=%v:%d", end.outside, tunnelPort),
			"allowed_ip=0.0.0.0/0", "allowed_ip=::/0"}
		// The sockets belong to the host of the thread that makes them.
		err := onThread(func() error {
			if err := unix.Setns(end.host.namespace, unix.CLONE_NEWNET); err != nil {
				return err
			}
			return end.host.startWireGuard(mtu, end.way, strings.Join(settings, "\n")+"\n")
		})
		if err != nil {
			return fmt.Errorf("%s end: wireguard: %w", end.host.name, err)
		}
	}
	return nil
}

// startWireGuard must be called on a thread in the host's namespace.
func (h *host) startWireGuard(mtu int, w way, settings string) error {
	flags := uint16(unix.IFF_VNET_HDR)
	if h.stack.Window > 0 {
		flags = 0 // packets one by one, as old devices did
	}
	fd, err := attachTUN(tunnelName, flags)
	if err != nil {
		return err
	}
	if err := h.configure(tunnelName, mtu, w); err != nil {
		return err
	}
	inner, _, err := wgtun.CreateUnmonitoredTUNFromFD(fd)
	if err != nil {
		return err
	}
	d := device.NewDevice(sized{inner, mtu}, conn.NewStdNetBind(), &device.Logger{Verbosef: device.DiscardLogf,
		Errorf: h.complain()})
	if err := d.IpcSet(settings); err != nil {
		return err
	}
	return d.Up()
}

// complain returns a logger that writes each kind of error once.
func (h *host) complain() func(format string, args ...any) {
	var told sync.Map
	return func(format string, args ...any) {
		if _, again := told.LoadOrStore(format, true); !again {
			fmt.Fprintf(os.Stderr, "fullpipe: lab: wireguard at the "+h.name+" end: "+format+"\n", args...)
		}
	}
}

// sized has a fixed MTU: the kernel would look for the device in the engine's own namespace.
type sized struct {
	wgtun.Device
	mtu int
}

func (s sized) MTU() (int, error) { return s.mtu, nil }
