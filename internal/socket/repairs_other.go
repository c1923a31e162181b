//go:build !linux || portable

package socket

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func (s *stream) repairs() Repairs { return repairsOf(s.conn) }

func repairsOf(conn syscall.Conn) (r Repairs) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return r
	}
	var now transfer.Sample
	h, err := Account(raw, &now)
	if err != nil || now.Have&transfer.HaveRetrans == 0 {
		return r
	}
	return Repairs{Retransmitted: now.Retransmitted, Bytes: -1, RTOs: -1, RTT: now.RTT, MinRTT: now.MinRTT,
		MSS: h.SegmentSize(), Known: true}
}

func (s *stream) send(b []byte) (int, error) {
	n, err := s.conn.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return n, err
}

func (s *stream) redial(to netip.AddrPort, timeout time.Duration) error {
	s.conn.Close()
	d := net.Dialer{Timeout: timeout, KeepAlive: -1, Control: control(s.options), Cancel: s.interrupted}
	d.SetMultipathTCP(false)
	if from := s.options.Route.From; from.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))
	}
	conn, err := d.Dial("tcp", to.String())
	if err != nil {
		select {
		case <-s.interrupted:
			return ErrInterrupted
		default:
			return err
		}
	}
	s.mu.Lock() // Interrupt may set the connection's deadline
	s.conn = conn.(*net.TCPConn)
	s.mu.Unlock()
	return s.conn.SetNoDelay(s.options.NoDelay)
}
