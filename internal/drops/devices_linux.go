package drops

import (
	"slices"

	"github.com/vishvananda/netlink"
)

// rootQdisc returns the kind of a device's root queueing discipline in this process's network
// namespace, "" if it is not known.
func rootQdisc(device string) string {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return ""
	}
	all, err := netlink.QdiscList(link)
	if err != nil {
		return ""
	}
	for _, q := range all {
		if q.Attrs().Parent == netlink.HANDLE_ROOT {
			return q.Type()
		}
	}
	return ""
}

// joinsOthers reports whether a device of this process's network namespace has its other end in
// another one, as a container's veth has.
func joinsOthers() bool {
	links, err := netlink.LinkList()
	if err != nil {
		return true
	}
	return slices.ContainsFunc(links, func(l netlink.Link) bool { return l.Attrs().NetNsID >= 0 })
}
