package catalog

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPrograms_AreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range Programs() {
		if seen[p.Name] || p.What == "" || p.Per == "" || p.Raise == "" || p.Source == "" || p.Bytes < 0 ||
			p.ReceiveDatagrams < 0 || p.SendDatagrams < 0 {
			t.Errorf("%+v", p)
		}
		seen[p.Name] = true
	}
	for _, name := range []string{"ssh", "HTTP2", "grpc", "smb", "nfs", "rsync", "s3", "kafka", "postgresql", "quic-go",
		"msquic", "nginx-quic", "cygwin", "filezilla", "sftp", "sshj", "lftp", "rclone", "restic", "grpc-dotnet",
		"node-http2", "hyper"} {
		if _, ok := FindProgram(name); !ok {
			t.Errorf("%s is not known", name)
		}
	}
}

func TestProgramAt(t *testing.T) {
	for _, c := range []struct {
		port  uint16
		bytes float64
		want  string
	}{{22, 2_099_924, "ssh"}, {22, 2_163_616, "ssh"}, {22, 1_000_000, ""}, {2222, 2_099_924, ""}, {445, 8_400_000, "smb"},
		{22, 0, ""}} {
		if p, found := ProgramAt(c.port, c.bytes); p.Name != c.want || found != (c.want != "") {
			t.Errorf("port %d, %.0f bytes: %q", c.port, c.bytes, p.Name)
		}
	}
}

func TestProgramOfWindow(t *testing.T) {
	for bytes, want := range map[int]string{64512: "cygwin", 65535: "", 65536: "", 64240: "cygwin", 63712: "",
		64511: "cygwin", 4194304: "", 212992: "", 0: ""} {
		if p, found := ProgramOfWindow(bytes); p.Name != want || found != (want != "") {
			t.Errorf("%d bytes: %q, want %q", bytes, p.Name, want)
		}
	}
	for bytes, want := range map[int]string{212992: "cygwin-64", 64512: "cygwin", 64240: "cygwin", 65280: "cygwin",
		65535: "cygwin", 65536: "", 64000: "", 211700: "", 4194304: ""} {
		if p, found := WindowsProgramOfBuffer(bytes); p.Name != want || found != (want != "") {
			t.Errorf("%d bytes of a Windows host: %q, want %q", bytes, p.Name, want)
		}
	}
}

// Samba's client got 220 Mbit/s (put) and 233 (get) once it was at its two requests of 8 MiB, over 400 Mbit/s and
// 400 ms; an SSH channel's window is one of bytes.
func TestRequestsTakeTheirTimeOnTheLine(t *testing.T) {
	const bps, rtt = 400e6, 400 * time.Millisecond
	samba, _ := FindProgram("smbclient")
	if got := float64(samba.Window(bps, rtt)) * 8 / rtt.Seconds(); got < 220e6 || got > 240e6 {
		t.Errorf("%.3g bit/s", got)
	}
	if w := samba.Window(0, rtt); w != samba.Bytes {
		t.Errorf("a path without bound: %d", w)
	}
	if ssh, _ := FindProgram("ssh"); ssh.Window(bps, rtt) != ssh.Bytes {
		t.Errorf("ssh: %d", ssh.Window(bps, rtt))
	}
}

// TestProgram_WindowOfDocumentedRequests compares a program's window with its documented outstanding requests:
// each takes a round trip and its own time on the line.
func TestProgram_WindowOfDocumentedRequests(t *testing.T) {
	const bps, rtt = 1e9, 100 * time.Millisecond
	for name, c := range map[string]struct{ requests, size float64 }{
		"rclone":    {64, 32768},
		"sshj":      {17, 32768},
		"lftp":      {16, 32768},
		"smbclient": {2, 8 << 20},
		"sftp":      {64, 0}, // the channel's window limits, not the requests
		"restic":    {128, 0},
	} {
		p, _ := FindProgram(name)
		want := float64(p.Bytes)
		if c.size > 0 {
			want = c.requests * c.size * rtt.Seconds() / (rtt.Seconds() + 8*c.size/bps)
		} else if p.Bytes != 64*32768 {
			t.Errorf("%s: %d bytes", name, p.Bytes)
		}
		if got := float64(p.Window(bps, rtt)); got < want-1 || got > want+1 {
			t.Errorf("%s: a window of %.0f bytes, want %.0f", name, got, want)
		}
	}
}

// TestFindProgram_ByOtherNames finds programs by the names of executables, and each name in one program only.
func TestFindProgram_ByOtherNames(t *testing.T) {
	for name, want := range map[string]string{"scp": "ssh", "SSH.EXE": "ssh", "OpenSSH": "ssh", "robocopy.exe": "smb",
		"aws": "s3", "node": "node-http2", "GRPC": "grpc", "iperf3": "", "": ""} {
		if p, found := FindProgram(name); p.Name != want || found != (want != "") {
			t.Errorf("%q: %q, want %q", name, p.Name, want)
		}
	}
	seen := map[string]bool{}
	for _, p := range Programs() {
		for _, name := range append(p.Also, p.Name) {
			if seen[name] || name != strings.ToLower(name) {
				t.Errorf("%q is the name of two programs, or not in lower case", name)
			}
			seen[name] = true
		}
	}
}

// TestPortsOf finds a program's ports by the names of its client's and its server's executables.
func TestPortsOf(t *testing.T) {
	for executable, want := range map[string][]uint16{"ssh": {22}, "sshd": {22}, "sshd-session": {22}, "scp": {22},
		"sshfs": nil, "": nil} {
		if got := PortsOf(executable); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", executable, got, want)
		}
	}
}
