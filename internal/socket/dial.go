package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"
)

// attemptDelay is the time for which an address is tried alone before the next one is tried concurrently (RFC 8305
// section 5, Connection Attempt Delay).
const attemptDelay = 250 * time.Millisecond

// Dial opens a TCP connection with its options set before the SYN leaves, which carries
// the window scale and the MSS. Multipath TCP and keep-alive probes are off. A name's
// addresses are tried side by side, the families in turn (RFC 8305); where all of them
// fail, the error is a *DialError.
func Dial(ctx context.Context, address string, o Options) (*net.TCPConn, error) {
	all, err := resolve(ctx, address, o.Route)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{KeepAlive: -1, Control: control(o)}
	d.SetMultipathTCP(false)
	if o.LocalPort != 0 || o.Route.From.IsValid() {
		d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(o.Route.From, o.LocalPort))
	}
	conn, err := race(ctx, address, all, attemptDelay, func(ctx context.Context, to netip.AddrPort) (*net.TCPConn, error) {
		conn, err := d.DialContext(ctx, "tcp", to.String())
		if err != nil {
			return nil, o.Route.refused(err)
		}
		return conn.(*net.TCPConn), nil
	})
	var option *OptionError
	if errors.As(err, &option) {
		return nil, option // of this host, and the same for all of them
	}
	return conn, err
}

// Attempt is one address that was tried and did not answer.
type Attempt struct {
	To  netip.AddrPort
	Err error
}

// DialError says of each of a host's addresses why it could not be connected to.
type DialError struct {
	Address  string // as it was asked for
	Attempts []Attempt
}

func (e *DialError) Error() string {
	if len(e.Attempts) == 1 {
		return e.Attempts[0].Err.Error()
	}
	each := make([]string, len(e.Attempts))
	for i, a := range e.Attempts {
		each[i] = fmt.Sprintf("%v: %s", a.To.Addr(), reason(a.Err))
	}
	return fmt.Sprintf("none of its %d addresses can be connected to: %s", len(each), strings.Join(each, "; "))
}

// Unwrap returns each address's error.
func (e *DialError) Unwrap() (all []error) {
	for _, a := range e.Attempts {
		all = append(all, a.Err)
	}
	return all
}

// reason is an attempt's error without what the address says already.
func reason(err error) string {
	var errno syscall.Errno
	var timeout net.Error
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) &&
		timeout.Timeout():
		return "no answer"
	case errors.As(err, &errno):
		return errno.Error()
	}
	return err.Error()
}

// FamilyError is a host without an address that the Route can reach.
type FamilyError struct {
	Host  string
	Route Route
	Has   []netip.Addr
}

func (e *FamilyError) Error() string {
	want := e.Route.Family
	if want == 0 {
		want = 6
		if e.Route.From.Is4() {
			want = 4
		}
	}
	if len(e.Has) == 1 && e.Has[0].Unmap().String() == e.Host {
		return fmt.Sprintf("%s is no IPv%d address", e.Host, want)
	}
	return fmt.Sprintf("%s has no IPv%d address", e.Host, want)
}

// Try names the way out.
func (e *FamilyError) Try() string { return "the other IP version, which it has" }

// resolve returns a host's addresses in the order of attempts: as the system prefers them (RFC 6724), but the two
// families in turn (RFC 8305 section 4).
func resolve(ctx context.Context, address string, r Route) ([]netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return nil, err
	}
	var found []netip.Addr
	if literal, bad := netip.ParseAddr(host); bad == nil {
		found = []netip.Addr{literal} // the resolver would drop its zone
	} else if found, err = net.DefaultResolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, err
	}
	var all []netip.AddrPort
	for _, a := range found {
		if r.carries(a) {
			all = append(all, netip.AddrPortFrom(a.Unmap(), uint16(port)))
		}
	}
	if len(all) == 0 {
		return nil, &FamilyError{host, r, found}
	}
	return inTurn(all), nil
}

// inTurn keeps each family's order and begins with the first one's.
func inTurn(all []netip.AddrPort) []netip.AddrPort {
	var families [2][]netip.AddrPort
	for _, a := range all {
		i := 0
		if a.Addr().Is4() != all[0].Addr().Is4() {
			i = 1
		}
		families[i] = append(families[i], a)
	}
	turned := make([]netip.AddrPort, 0, len(all))
	for i := range all {
		for _, family := range families {
			if i < len(family) {
				turned = append(turned, family[i])
			}
		}
	}
	return turned
}

// race tries the addresses in order, each next one after the delay or as soon as all before it have failed, until one
// connects or ctx ends.
func race(ctx context.Context, address string, all []netip.AddrPort, delay time.Duration,
	dial func(context.Context, netip.AddrPort) (*net.TCPConn, error)) (*net.TCPConn, error) {
	if len(all) == 1 {
		conn, err := dial(ctx, all[0])
		if err != nil {
			return nil, &DialError{address, []Attempt{{all[0], err}}}
		}
		return conn, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		i    int
		conn *net.TCPConn
		err  error
	}
	outcomes := make(chan outcome)
	failed := make([]error, len(all))
	var started, over int
	begin := func() {
		i := started
		started++
		go func() {
			conn, err := dial(ctx, all[i])
			outcomes <- outcome{i, conn, err}
		}()
	}
	next := time.NewTimer(delay)
	defer next.Stop()
	begin()
	var won *net.TCPConn
	for over < started {
		select {
		case o := <-outcomes:
			over++
			failed[o.i] = o.err
			switch {
			case o.err == nil && won == nil:
				won = o.conn
				cancel() // the others are waited for, so that none is left open
			case o.err == nil:
				o.conn.Close()
			case won == nil && over == started && started < len(all) && ctx.Err() == nil:
				begin()
				next.Reset(delay)
			}
		case <-next.C:
			if won == nil && started < len(all) && ctx.Err() == nil {
				begin()
				next.Reset(delay)
			}
		}
	}
	if won != nil {
		return won, nil
	}
	e := &DialError{Address: address}
	for i, err := range failed[:started] {
		e.Attempts = append(e.Attempts, Attempt{all[i], err})
	}
	return nil, e
}
