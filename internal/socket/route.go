package socket

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
)

// Route says by which way connections leave this host. The zero value leaves it to the
// system.
type Route struct {
	// Family is 4 or 6, the only IP version to use; 0 is either.
	Family int
	// From is the local address to send from.
	From netip.Addr
	// Device is the interface to send through and to receive by.
	Device string
}

// ParseRoute reads what a user binds to: an address of this host or an interface's name;
// empty is neither. Family is as in Route.
func ParseRoute(bind string, family int) (Route, error) {
	r := Route{Family: family}
	if bind == "" {
		return r, nil
	}
	from, err := netip.ParseAddr(bind)
	switch {
	case err != nil && (strings.ContainsAny(bind, ":/ \t\x00") || len(bind) > 64):
		return r, fmt.Errorf("%q is neither an address nor an interface", bind)
	case err != nil:
		r.Device = bind
		return r, nil
	}
	r.From = from.Unmap()
	if family != 0 && !r.carries(r.From) {
		return r, fmt.Errorf("%s is no IPv%d address", bind, family)
	}
	return r, nil
}

// carries says whether a remote address can be reached by this way.
func (r Route) carries(to netip.Addr) bool {
	four := to.Unmap().Is4()
	return (r.Family == 0 || four == (r.Family == 4)) && (!r.From.IsValid() || four == r.From.Is4())
}

// Bind makes a socket that is not connected yet leave by this way.
func (r Route) Bind(fd uintptr, six bool) error {
	if r.Device != "" {
		if err := bindDevice(fd, r.Device, six); err != nil {
			return &OptionError{Option: "the interface " + r.Device, Err: err, Hint: DeviceHint(err)}
		}
	}
	return nil
}

// DeviceHint returns what to try instead of an interface that err is about: the names of those that are up.
func DeviceHint(err error) string {
	if errors.Is(err, syscall.EPERM) {
		return "the interface's address instead: binding to a device needs Linux 5.7, or CAP_NET_RAW"
	}
	all, listed := net.Interfaces()
	if listed != nil || errors.Is(err, ErrNotSupported) {
		return "the interface's address instead"
	}
	var names []string
	for _, i := range all {
		if i.Flags&net.FlagUp != 0 {
			names = append(names, i.Name)
		}
	}
	slices.Sort(names)
	return "an interface that is up: " + strings.Join(names, ", ")
}

// refused names the local address where the system has no such one.
func (r Route) refused(err error) error {
	if r.From.IsValid() && errors.Is(err, syscall.EADDRNOTAVAIL) {
		return &OptionError{Option: "the address " + r.From.String() + " to send from", Err: syscall.EADDRNOTAVAIL,
			Hint: "an address of this host, or an interface's name"}
	}
	return err
}
