package link

// modern returns the settings of a current Linux, with every value that a host may have changed.
func modern(rmem, wmem string) []Sysctl {
	return []Sysctl{
		{"ipv4.tcp_rmem", rmem}, {"ipv4.tcp_wmem", wmem},
		{"ipv4.tcp_moderate_rcvbuf", "1"}, {"ipv4.tcp_window_scaling", "1"},
		{"ipv4.tcp_timestamps", "1"}, {"ipv4.tcp_sack", "1"}, {"ipv4.tcp_dsack", "1"},
		{"ipv4.tcp_congestion_control", "cubic"}, {"ipv4.tcp_ecn", "2"},
		{"ipv4.tcp_no_metrics_save", "0"}, {"ipv4.tcp_slow_start_after_idle", "1"},
		{"ipv4.tcp_mtu_probing", "0"}, {"ipv4.tcp_shrink_window", "0"},
		{"ipv4.tcp_notsent_lowat", "4294967295"}, {"ipv4.tcp_adv_win_scale", "1"},
	}
}

// old returns the settings that old Windows versions share: fixed buffers, no timestamps, Reno.
func old(changes ...Sysctl) []Sysctl {
	s := Stack{Sysctls: modern("4096 131072 4194304", "4096 16384 4194304")}
	changes = append(changes, Sysctl{"ipv4.tcp_moderate_rcvbuf", "0"}, Sysctl{"ipv4.tcp_timestamps", "0"},
		Sysctl{"ipv4.tcp_congestion_control", "reno"}, Sysctl{"ipv4.tcp_ecn", "0"}, Sysctl{"ipv4.tcp_dsack", "0"})
	for _, c := range changes {
		s.state(c.Name, c.Value)
	}
	return s.Sysctls
}

// oldWindows returns Windows versions without autotuning.
func oldWindows() []Stack {
	return []Stack{
		{Name: "windows-95", About: "window of 8192 bytes, rounded up to six segments (8760); no scaling, timestamps or SACK",
			Sysctls: old(Sysctl{"ipv4.tcp_sack", "0"}, Sysctl{"ipv4.tcp_window_scaling", "0"}), Window: 8760,
			Source: "Microsoft knowledge base 158474"},
		{Name: "windows-2000", About: "window of 17520 bytes, more when a program asks; SACK; sends by AFD's rule with 8 KB",
			Sysctls: old(), Window: 17520, SenderRule: "afd:8192",
			Source: "Microsoft Windows 2000 TCP/IP Implementation Details; Microsoft knowledge base 214397, 224829"},
		{Name: "windows-xp", About: "window of 65535 bytes, more when a program asks; SACK; sends by AFD's rule with 8 KB",
			Sysctls: old(), Window: 65535, SenderRule: "afd:8192",
			Source: "Microsoft knowledge base 314053, 214397"},
		server2012(),
	}
}

// server2012 returns Windows Server 2012 with automatic buffers; with app=cygwin it is case S1 and S5 of
// docs/coverage.md. Reno replaces CTCP.
func server2012() Stack {
	s := Stack{Name: "server-2012", About: "Windows Server 2012: automatic windows up to 16,776,960 bytes (scale factor " +
		"8), send buffers up to 16 MB, SACK, no timestamps, Reno for CTCP, 4 segments at the start",
		Sysctls:       old(Sysctl{"ipv4.tcp_rmem", "4096 131072 33554432"}, Sysctl{"ipv4.tcp_wmem", "4096 65536 16777216"}),
		InitialWindow: 4, LargestWindow: largestNormal,
		Source: "the listing of Get-NetTCPSetting in docs/coverage.md, S1; learn.microsoft.com: Performance tuning for " +
			"network adapters, autotuning level Normal"}
	s.state("ipv4.tcp_moderate_rcvbuf", "1")
	return s
}

// largestNormal is the largest window in bytes of Windows autotuning at level Normal.
const largestNormal = 65535 << 8

const (
	windowsTemplate = "TCP Templates for Windows Server 2019 (Microsoft's networking blog, 3 October 2018), the " +
		"Internet template; learn.microsoft.com: Performance tuning for network adapters, autotuning level Normal"
	xnu = "xnu-11417.101.15 (macOS 15): bsd/netinet/tcp_subr.c, tcp_cc.h, tcp_input.c, tcp_timer.c"
)

// today returns current systems other than Linux. Their delayed acknowledgements are Linux's: every second segment,
// or 40 ms.
func today() (all []Stack) {
	for _, s := range []struct{ name, about string }{
		{"windows-10", "Windows 10 since 1709"}, {"server-2019", "Windows Server 2019"}, {"windows-11", "Windows 11"},
		{"server-2022", "Windows Server 2022"}, {"server-2025", "Windows Server 2025"},
	} {
		about := s.about + ": automatic windows up to 16,776,960 bytes (scale factor 8), send buffers up to 16 MB, " +
			"SACK, no timestamps, CUBIC, 10 segments at the start, delayed acknowledgements of 40 ms"
		source := windowsTemplate
		if s.name != "server-2019" && s.name != "windows-10" {
			about += " (as Server 2019 and Windows 11 list it)"
			source += "; github.com/Siemens-Healthineers/ETWAnalyzer Documentation/DumpTCPCommand.md, a listing of " +
				"Windows 10 and 11; later servers are not documented"
		}
		windows := Stack{Name: s.name, About: about, Sysctls: modern("4096 131072 33554432", "4096 65536 16777216"),
			InitialWindow: 10, LargestWindow: largestNormal, Source: source}
		windows.state("ipv4.tcp_timestamps", "0")
		windows.state("ipv4.tcp_ecn", "0")
		windows.state("ipv4.tcp_slow_start_after_idle", "0") // CwndRestart False
		all = append(all, windows)
	}
	return append(all, Stack{Name: "macos", About: "macOS 15 with more than 4 GB of memory: automatic windows up to " +
		"4,194,240 bytes (scale factor 6), send buffers up to 4 MiB, SACK, timestamps, CUBIC, 10 segments at the start; it " +
		"acknowledges twice a round trip in bulk, here every second segment",
		Sysctls:       modern("4096 131072 8388608", "4096 131072 8388608"),
		InitialWindow: 10, LargestWindow: 65535 << 6, Source: xnu})
}
