package host

import (
	"errors"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Routes are read and changed as the kernel's own messages, so that what this program does
// not know of a route stays as it is; netlink.Route would leave it out.

// dump asks rtnetlink for all of something and calls each with every answer's payload,
// which each may keep. What changes meanwhile may be missing or there twice.
func dump(kind int, request []byte, each func(payload []byte)) error {
	r := nl.NewNetlinkRequest(kind, unix.NLM_F_DUMP)
	r.AddRawData(request)
	err := r.ExecuteIter(unix.NETLINK_ROUTE, 0, func(payload []byte) bool { each(payload); return true })
	if errors.Is(err, nl.ErrDumpInterrupted) {
		return nil
	}
	return err
}

// acknowledged sends one change to rtnetlink and waits for the kernel's answer to it.
func acknowledged(kind, flags int, body []byte) error {
	r := nl.NewNetlinkRequest(kind, flags|unix.NLM_F_ACK)
	r.AddRawData(body)
	_, err := r.Execute(unix.NETLINK_ROUTE, 0)
	return err
}
