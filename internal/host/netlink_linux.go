package host

import (
	"errors"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Routes are read and changed as the kernel's own messages, so that attributes that this program does not know stay.
// netlink.Route would drop them.

// dump requests a list from rtnetlink and calls each with the payload of every message; each may keep it. Entries that
// change meanwhile may be missing or duplicate.
func dump(kind int, request []byte, each func(payload []byte)) error {
	r := nl.NewNetlinkRequest(kind, unix.NLM_F_DUMP)
	r.AddRawData(request)
	err := r.ExecuteIter(unix.NETLINK_ROUTE, 0, func(payload []byte) bool { each(payload); return true })
	if errors.Is(err, nl.ErrDumpInterrupted) {
		return nil
	}
	return err
}

// sendAcknowledged sends one change to rtnetlink and waits for the kernel's acknowledgement.
func sendAcknowledged(kind, flags int, body []byte) error {
	r := nl.NewNetlinkRequest(kind, flags|unix.NLM_F_ACK)
	r.AddRawData(body)
	_, err := r.Execute(unix.NETLINK_ROUTE, 0)
	return err
}
