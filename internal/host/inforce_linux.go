package host

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func settingsInForce() map[string]string {
	found := map[string]string{}
	for _, name := range []string{"net.core.rmem_max", "net.core.wmem_max", "net.core.default_qdisc", "net.ipv4.tcp_rmem",
		"net.ipv4.tcp_wmem",
		"net.ipv4.tcp_congestion_control", "net.ipv4.tcp_moderate_rcvbuf", "net.ipv4.tcp_window_scaling",
		"net.ipv4.tcp_timestamps",
		"net.ipv4.tcp_sack", "net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_slow_start_after_idle",
		"net.ipv4.tcp_no_metrics_save"} {
		text, err := os.ReadFile(filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/")))
		if err == nil {
			found[name] = strings.Join(strings.Fields(string(text)), " ")
		}
	}
	return found
}

// clockSynchronised reads the state of the kernel's clock (adjtimex(2)).
func clockSynchronised() *bool {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	if err != nil {
		return nil
	}
	is := state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0
	return &is
}
