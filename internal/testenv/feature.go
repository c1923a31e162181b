package testenv

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
)

// Feature is something that a machine may lack and a test may need.
type Feature string

// Systems. Tests in files with a system's suffix need none of them.
const (
	Linux Feature = "os-linux"
	Unix  Feature = "os-unix" // a system with sh: every one but Windows
)

// Features that an ordinary user's machine may have. `go test -short` uses them.
const (
	IPv6             Feature = "ipv6"              // an address ::1
	ICMP             Feature = "icmp"              // unprivileged ICMP sockets: net.ipv4.ping_group_range
	Symlinks         Feature = "symlinks"          // Windows wants a privilege for them
	ManyFiles        Feature = "many-files"        // a hard limit of 20000 open files
	SysctlDirectory  Feature = "sysctl-directory"  // /etc/sysctl.d
	NetworkNamespace Feature = "network-namespace" // in a user namespace unless root
	MountNamespace   Feature = "mount-namespace"   // in a user namespace unless root, and tmpfs in it
)

// Features that need privileges or take long. `go test -short` leaves them out.
const (
	Root          Feature = "root"           // of the initial user namespace
	Lab           Feature = "lab"            // /dev/net/tun and network namespaces
	BPF           Feature = "bpf"            // CAP_BPF, CAP_PERFMON and the kernel's BTF
	Cgroup        Feature = "cgroup"         // a cgroup2 file system in which groups can be made
	CPUQuota      Feature = "cpu-quota"      // the cpu controller of cgroup2 or cgroup v1
	VXLAN         Feature = "vxlan"          // the kernel's VXLAN devices
	TimeNamespace Feature = "time-namespace" // unshare -T
	Quiet         Feature = "quiet"          // nothing else runs: make live and make bank say so
)

// Programs. `go test -short` runs none of them.
const (
	CC             Feature = "cc"
	Chromium       Feature = "chromium"
	Curl           Feature = "curl"
	Dpkg           Feature = "dpkg"
	Go             Feature = "go"
	Iperf2         Feature = "iperf"
	Iperf3         Feature = "iperf3"
	Java           Feature = "java"
	MinGW          Feature = "mingw"
	Nginx          Feature = "nginx"
	Node           Feature = "node"
	NFT            Feature = "nft"
	NPM            Feature = "npm"
	OpenSSL        Feature = "openssl"
	OpenVPN        Feature = "openvpn"
	Pip            Feature = "pip"
	Postgres       Feature = "postgres"
	Prometheus     Feature = "prometheus"
	Promtool       Feature = "promtool"
	Python         Feature = "python"
	RPM            Feature = "rpm"
	Rust           Feature = "rust"
	RustSocket2    Feature = "rust-socket2" // the crate, in cargo's cache: tests fetch nothing
	Script         Feature = "script"
	Setpriv        Feature = "setpriv"
	SS             Feature = "ss"
	SSH            Feature = "ssh"
	SSHD           Feature = "sshd"
	SSHKeygen      Feature = "ssh-keygen"
	SystemdAnalyze Feature = "systemd-analyze"
	TCPTrace       Feature = "tcptrace"
	Tmux           Feature = "tmux"
	Wine           Feature = "wine"
)

// programs lists where each program may be: a name on the search path, or a pattern of absolute paths.
var programs = map[Feature][]string{
	CC:             {"cc"},
	Chromium:       {"chromium", "chromium-browser"},
	Curl:           {"curl"},
	Dpkg:           {"dpkg"},
	Go:             {"go"},
	Iperf2:         {"iperf"},
	Iperf3:         {"iperf3"},
	Java:           {"javac"},
	MinGW:          {"x86_64-w64-mingw32-gcc"},
	Nginx:          {"nginx", "/usr/sbin/nginx"},
	Node:           {"node"},
	NFT:            {"nft", "/usr/sbin/nft"},
	NPM:            {"npm"},
	OpenSSL:        {"openssl"},
	OpenVPN:        {"openvpn", "/usr/sbin/openvpn"},
	Pip:            {"pip3"},
	Postgres:       {"/usr/lib/postgresql/*/bin/pg_ctl", "pg_ctl"},
	Prometheus:     {"prometheus"},
	Promtool:       {"promtool"},
	Python:         {"python3"},
	RPM:            {"rpm"},
	Rust:           {"cargo"},
	Script:         {"script"},
	Setpriv:        {"setpriv"},
	SS:             {"ss", "/usr/sbin/ss"},
	SSH:            {"ssh"},
	SSHD:           {"sshd", "/usr/sbin/sshd"},
	SSHKeygen:      {"ssh-keygen"},
	SystemdAnalyze: {"systemd-analyze"},
	TCPTrace:       {"tcptrace"},
	Tmux:           {"tmux"},
	Wine:           {"wine", "wine64"},
}

// property is what testenv knows about a feature.
type property struct {
	short bool         // `go test -short` uses it
	probe func() error // runs once in a process; the error says why the feature is missing
}

var properties = sync.OnceValue(func() map[Feature]property {
	all := map[Feature]property{
		Linux:     {true, func() error { return system(runtime.GOOS == "linux") }},
		Unix:      {true, func() error { return system(runtime.GOOS != "windows") }},
		IPv6:      {true, probeIPv6},
		Symlinks:  {true, probeSymlinks},
		ManyFiles: {true, probeManyFiles},
		SysctlDirectory: {true, func() error {
			_, err := os.Stat("/etc/sysctl.d")
			return err
		}},
		ICMP:             {true, probeICMP},
		NetworkNamespace: {true, probeNetworkNamespace},
		MountNamespace:   {true, probeMountNamespace},
		Root:             {false, probeRoot},
		Lab:              {false, probeLab},
		BPF:              {false, probeBPF},
		Cgroup:           {false, probeCgroup},
		CPUQuota:         {false, probeCPUQuota},
		VXLAN:            {false, probeVXLAN},
		TimeNamespace:    {false, probeTimeNamespace},
		RustSocket2:      {false, probeRustSocket2},
		Quiet:            {false, probeQuiet},
	}
	for f := range programs {
		all[f] = property{false, func() error {
			_, err := find(f)
			return err
		}}
	}
	for f, p := range all {
		all[f] = property{p.short, sync.OnceValue(p.probe)}
	}
	return all
})

// probeQuiet believes whoever runs the tests: a machine cannot be asked whether it will stay quiet.
func probeQuiet() error {
	if os.Getenv("FULLPIPE_BANK") == "1" {
		return nil
	}
	return errors.New("tests that measure run by make live and make bank")
}

func system(is bool) error {
	if is {
		return nil
	}
	return errors.New("this system is " + runtime.GOOS)
}

// find returns the path of a program. Of several versions below a pattern it takes the last.
func find(f Feature) (string, error) {
	var missing error
	for _, name := range programs[f] {
		if !filepath.IsAbs(name) {
			path, err := exec.LookPath(name)
			if err == nil {
				return path, nil
			}
			missing = err
			continue
		}
		if paths, _ := filepath.Glob(name); len(paths) > 0 {
			return paths[len(paths)-1], nil
		}
	}
	if missing == nil {
		missing = fmt.Errorf("no %v", programs[f])
	}
	return "", missing
}

func probeIPv6() error {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		return err
	}
	return l.Close()
}

func probeSymlinks() error {
	dir, err := os.MkdirTemp("", "fullpipe-testenv-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return os.Symlink("target", filepath.Join(dir, "link"))
}

func probeRustSocket2() error {
	if _, err := find(Rust); err != nil {
		return err
	}
	home := os.Getenv("CARGO_HOME")
	if home == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return err
		}
		home = filepath.Join(user, ".cargo")
	}
	crate := filepath.Join(home, "registry", "cache", "*", "socket2-0.5.*.crate")
	if paths, _ := filepath.Glob(crate); len(paths) == 0 {
		return fmt.Errorf("no %s", crate)
	}
	return nil
}
