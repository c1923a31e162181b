package cli

// task is a group of commands by what a user wants to do.
type task struct {
	name string
	rows []taskRow
}

// taskRow is a line of the overview: one command, or several that belong together.
type taskRow struct{ commands, text string }

// tasks are all commands, the first ones first.
var tasks = []task{
	{"Find out", []taskRow{
		{"measure", "measure one path and name what limits it"},
		{"why", "name what limits a running program's connections now"},
		{"diagnose", "name what limited each connection of a capture"},
		{"audit, predict", "settings that limit a host; goodput by arithmetic"},
		{"sweep, rfc6349", "measure a grid of settings; test a line by RFC 6349"},
		{"explain, mcp", "explain limiters, parameters; tools for assistants"}}},
	{"Fix", []taskRow{
		{"tune", "find windows and settings that help, prove the gain"},
		{"plan", "windows and settings for a stated path"},
		{"apply, undo", "change this host by a plan; take the changes back"},
		{"status", "which of this host's settings are fullpipe's"},
		{"exec", "run a program with the right windows (Linux)"}}},
	{"Watch", []taskRow{
		{"watch", "follow this host's connections and their limiters"},
		{"recheck", "test paths again on a schedule, report what changed"},
		{"history, ui", "stored results; as pages in a browser"}}},
	{"Far ends", []taskRow{
		{"serve, agent", "far ends for fullpipe, iperf, browsers; of a fleet"},
		{"iperf3, key", "iperf3's command line; the keys of a server"}}},
	{"Lab", []taskRow{{"lab", "two hosts and a link on this machine (Linux)"}}},
	{"Files", []taskRow{{"show, version", "print a stored result again; which build this is"}}},
}

// common are the flags that most people use, the first ones first. Commands that are not here have few flags.
var common = map[string][]string{
	"tune": {"direction", "key-file", "budget", "goal", "apply", "file-size", "html", "no-history", "json"},
	"measure": {"direction", "time", "parallel", "udp", "rate", "rr", "bidir", "congestion", "receive-buffer", "key-file",
		"json"},
	"sweep":    {"direction", "send-buffers", "receive-buffers", "congestion", "time", "budget", "html", "csv", "json"},
	"rfc6349":  {"cir", "direction", "budget", "time", "tolerance", "frames", "html", "json"},
	"serve":    {"listen", "key-file", "iperf3", "iperf2", "web", "max-tests", "max-time", "max-bytes", "json"},
	"plan":     {"rate", "rtt", "target", "role", "path", "ping", "max-delay", "memory", "format", "json"},
	"predict":  {"rate", "rtt", "path", "near", "far", "send-buffer", "receive-buffer", "loss", "json"},
	"audit":    {"rate", "rtt", "path", "connections", "collect", "app", "json"},
	"exec":     {"to", "window", "send-buffer", "receive-buffer", "congestion", "budget", "report", "key-file"},
	"diagnose": {"interface", "host", "port", "time", "details", "top", "far", "html", "json"},
	"watch":    {"program", "host", "port", "min-rate", "every", "lines", "on-change", "record", "json"},
	"ui":       {"listen", "listen-cert", "listen-key", "listen-token-file", "no-open", "store"},
	"recheck":  {"every", "direction", "quiet-hours", "day-bytes", "on-change", "webhook", "record", "json"},
	"iperf3": {"client", "server", "port", "time", "parallel", "reverse", "udp", "bitrate", "length", "interval",
		"json"},
}

// flagGroups are the groups of long help with the names of their flags in all commands.
var flagGroups = []struct{ name, flags string }{
	{"Target", `accept-likely apply apply-far bind bind-dev client copy also all-namespaces app collect collector compare
		container cntl-ka connect-timeout cport dev dry-run end far far-target for forget from goal host interface ipv4 ipv6
		local near path persist ping port program role rules server system stack target to tunnel unit version4
		version6 via vpn yes listen own keys one-off daemon idle-timeout until-eof overlap seed reference
		address files name labels iperf3 iperf2 web web-origin exclusive drops rcv-timeout`},
	{"Traffic", `bidir bitrate budget bytes blockcount capacity concurrency crr datagram direction dont-fragment dscp
		every exchange file-size flow-cap frame-loss frame-time frames interval jitter length loss max-delay memory omit
		overhead parallel pacing-timer precision queue quiet-hours rate rate-down rate-up read-rate repeating-payload
		repeats request-size response-size reverse rounds rr rtt time tos tune udp udp-counters-64bit write-rate
		write-size write-sizes zone zerocopy
		skip-rx-copy cir cir-down cir-up tolerance least-efficiency most-buffer-delay day-bytes day-time max-bytes
		min-rate sampled extra-data`},
	{"Sockets", `clamp congestion connections copy-data fq-rate initcwnd initrwnd ignore-program-buffers mss mtu no-delay
		no-fq-socket-pacing pacing receive-buffer receive-buffers route rule send-buffer send-buffers set-mss socket-buffers timestamps window`},
	{"Output", `capture color csv details fail-below fail-on forceflush format get-server-output help html json json-stream
		lines logfile no-open note on-change on-change-shell picture pidfile quiet report rows title timestamp top
		undo verbose version webhook no-descriptions`},
	{"History", `anonymize label limit no-history record since store before`},
	{"Security", `authorized-users-path join join-file limits key key-file listen-cert listen-key listen-operator-token-file
		listen-token-file max-buffers max-clients max-rate max-streams max-tests max-tests-per-host max-time
		rsa-private-key-path rsa-public-key-path server-bitrate-limit server-max-duration time-skew-threshold
		use-pkcs1-padding username web-bytes web-cert web-key web-tests web-token-file`},
}
