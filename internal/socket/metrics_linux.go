package socket

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Generic netlink's tcp_metrics (include/uapi/linux/tcp_metrics.h).
const (
	tcpMetricsVersion  = 1
	tcpMetricsDelete   = 2
	tcpMetricsAddrIPv4 = 1
	tcpMetricsAddrIPv6 = 2
)

func forgetPath(to netip.Addr) error {
	to = to.Unmap()
	family, err := netlink.GenlFamilyGet("tcp_metrics")
	if err != nil {
		return fmt.Errorf("find tcp_metrics: %w", err)
	}
	attribute := tcpMetricsAddrIPv4
	if to.Is6() {
		attribute = tcpMetricsAddrIPv6
	}
	request := nl.NewNetlinkRequest(int(family.ID), unix.NLM_F_ACK)
	request.AddData(&nl.Genlmsg{Command: tcpMetricsDelete, Version: tcpMetricsVersion})
	request.AddData(nl.NewRtAttr(attribute, to.AsSlice()))
	if _, err := request.Execute(unix.NETLINK_GENERIC, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("forget the metrics of %v: %w", to, err)
	}
	return nil
}

// The threshold is not kept unless asked for since Linux 5.6
// (tcp_no_ssthresh_metrics_save, 1 by default); before, it was.
func remembersPaths() bool {
	return readSysctl("net/ipv4/tcp_no_metrics_save") == "0" && readSysctl("net/ipv4/tcp_no_ssthresh_metrics_save") != "1"
}
