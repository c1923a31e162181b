package path

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// echo asks one host by ICMP echo requests.
type echo struct {
	conn   net.PacketConn
	method string
	to     net.Addr
	six    bool
	id     uint16
	nonce  [8]byte // identifies replies to this process
	seq    uint16
	from   uint16 // first request whose reply is accepted
	answer [64 << 10]byte
}

// openEcho tries an unprivileged socket first.
func openEcho(to netip.Addr, by socket.Route) (*echo, error) {
	to = to.Unmap()
	e := &echo{six: to.Is6()}
	rand.Read(e.nonce[:])
	e.id = binary.BigEndian.Uint16(e.nonce[:])
	var err error
	e.conn, err = listenEcho(e.six, false, by)
	if err == nil {
		e.method = DatagramICMP
		e.to = &net.UDPAddr{IP: to.AsSlice(), Zone: to.Zone()}
		return e, nil
	}
	e.conn, err = listenEcho(e.six, true, by)
	if err == nil {
		e.method = RawICMP
		e.to = &net.IPAddr{IP: to.AsSlice(), Zone: to.Zone()}
		return e, nil
	}
	return nil, fmt.Errorf("ICMP echo: %w", err)
}

func (e *echo) close() { e.conn.Close() }

func (e *echo) ask(ctx context.Context, c Config) (RoundTrips, error) {
	r := RoundTrips{Method: e.method}
	for i := range c.Count {
		if i > 0 && !pause(ctx, c.Every) {
			break
		}
		e.from = e.seq + 1
		took, err := e.probe(ctx, 56, c.Timeout)
		if err != nil {
			return r, err
		}
		if took > 0 {
			r.Times = append(r.Times, took)
			continue
		}
		r.Lost++
		if r.Lost == 3 && len(r.Times) == 0 {
			break // the host does not reply
		}
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	if len(r.Times) == 0 {
		return r, errSilent
	}
	return r, nil
}

// probe sends one request with this payload size after the ICMP header and returns the RTT, or 0 without a reply. An
// error means that the packet cannot leave this host.
func (e *echo) probe(ctx context.Context, payload int, timeout time.Duration) (time.Duration, error) {
	e.seq++
	body := make([]byte, max(payload, len(e.nonce)))
	copy(body, e.nonce[:])
	m := icmp.Message{Type: ipv4.ICMPTypeEcho, Body: &icmp.Echo{ID: int(e.id), Seq: int(e.seq), Data: body}}
	if e.six {
		m.Type = ipv6.ICMPTypeEchoRequest
	}
	request, err := m.Marshal(nil) // the kernel fills in ICMPv6's checksum
	if err != nil {
		return 0, err
	}
	defer context.AfterFunc(ctx, func() { e.conn.SetReadDeadline(time.Unix(1, 0)) })()
	start := time.Now()
	e.conn.SetReadDeadline(start.Add(timeout))
	if _, err := e.conn.WriteTo(request, e.to); err != nil {
		// The error may belong to an earlier probe; it is reported once.
		if _, err := e.conn.WriteTo(request, e.to); err != nil {
			return 0, err
		}
	}
	for {
		n, _, err := e.conn.ReadFrom(e.answer[:])
		took := time.Since(start)
		switch {
		case os.IsTimeout(err):
			return 0, ctx.Err()
		case err != nil: // an ICMP error about an earlier probe
			if took > timeout {
				return 0, nil
			}
			continue
		}
		if e.isReply(e.answer[:n]) {
			return max(took, 1), nil
		}
	}
}

// isReply reports whether the packet is a reply to an accepted request of this process.
func (e *echo) isReply(packet []byte) bool {
	protocol := ipv4.ICMPTypeEchoReply.Protocol()
	if e.six {
		protocol = ipv6.ICMPTypeEchoReply.Protocol()
	}
	m, err := icmp.ParseMessage(protocol, packet)
	if err != nil || m.Type != ipv4.ICMPTypeEchoReply && m.Type != ipv6.ICMPTypeEchoReply {
		return false
	}
	body, ok := m.Body.(*icmp.Echo)
	return ok && e.seq-uint16(body.Seq) <= e.seq-e.from && bytes.HasPrefix(body.Data, e.nonce[:])
}
