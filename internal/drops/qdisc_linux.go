package drops

import "github.com/vishvananda/netlink"

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
