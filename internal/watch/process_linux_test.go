package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fakeProcess is a process of a made-up /proc.
type fakeProcess struct {
	pid, parent int
	program     string // at most 15 characters, as the kernel keeps it
	args        []string
	session     int
	terminal    int
	cgroup      string
}

func writeProcesses(t *testing.T, all []fakeProcess) (root string, pids []int) {
	t.Helper()
	root = t.TempDir()
	for _, p := range all {
		dir := filepath.Join(root, strconv.Itoa(p.pid))
		stat := fmt.Sprintf("%d (%s) S %d %d %d %d -1 4194560 0\n", p.pid, p.program, p.parent, p.pid, p.session, p.terminal)
		files := map[string]string{"stat": stat, "cmdline": strings.Join(p.args, "\x00") + "\x00",
			"cgroup": "0::" + p.cgroup + "\n"}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		pids = append(pids, p.pid)
	}
	return root, pids
}

// TestReadProcesses looks up programs, scripts and PIDs with their children in a host's processes.
func TestReadProcesses(t *testing.T) {
	root, pids := writeProcesses(t, []fakeProcess{
		{pid: 1, program: "systemd", args: []string{"/sbin/init"}, session: 1},
		{pid: 100, parent: 1, program: "sshd", args: []string{"sshd: /usr/sbin/sshd [listener]"}, session: 100,
			cgroup: "/system.slice/ssh.service"},
		{pid: 110, parent: 100, program: "sshd-session", args: []string{"sshd-session: user@pts/0"}, session: 110},
		{pid: 111, parent: 110, program: "bash", args: []string{"-bash"}, session: 111, terminal: 34816},
		{pid: 120, parent: 111, program: "rsync", args: []string{"rsync", "-a", "big", "far:"}, session: 111,
			terminal: 34816},
		{pid: 121, parent: 120, program: "ssh", args: []string{"ssh", "far", "rsync", "--server"}, session: 111},
		{pid: 130, parent: 111, program: "python3", args: []string{"/usr/bin/python3.12", "-u", "-X", "dev", "/opt/a/snd.py"},
			session: 111},
		{pid: 131, parent: 130, program: "curl", args: []string{"curl", "-T", "x", "far"}, session: 111},
		{pid: 140, parent: 1, program: "MainThread", args: []string{"node", "--inspect", "server.js"}, session: 140},
		{pid: 150, parent: 1, program: "java", args: []string{"java", "-Xmx1g", "-cp", "libs/*", "org.apache.kafka.Kafka",
			"server.properties"}, session: 150, cgroup: "/system.slice/kafka.service"},
		{pid: 160, parent: 1, program: "very-long-progr", args: []string{"very-long-program-name"}, session: 160},
		{pid: 170, parent: 1, program: "odd) S 1 (name", args: []string{"odd"}, session: 170},
		{pid: 180, parent: 181, program: "a", session: 1}, {pid: 181, parent: 180, program: "b", session: 1},
	})
	for _, c := range []struct {
		match Match
		want  []string // the owners that match, with their ancestors
	}{
		{Match{Name: "rsync"}, []string{"120", "120>121"}},
		{Match{Program: "rsync"}, []string{"120", "120>121"}},
		{Match{Name: "ssh"}, []string{"100", "121"}}, // ssh.service has sshd
		{Match{Name: "sshd"}, []string{"100", "100>110"}},
		{Match{Name: "snd.py"}, []string{"130", "130>131"}},
		{Match{Name: "python3"}, []string{"130", "130>131"}},
		{Match{Name: "node"}, []string{"140"}}, {Match{Name: "server.js"}, []string{"140"}},
		{Match{Name: "Kafka"}, []string{"150"}}, {Match{Name: "org.apache.kafka.Kafka"}, []string{"150"}},
		{Match{Name: "kafka"}, []string{"150"}}, {Match{Unit: "kafka.service"}, []string{"150"}},
		{Match{Name: "very-long-program-name"}, []string{"160"}},
		{Match{PIDs: []int{120}}, []string{"120", "120>121"}},
		{Match{PIDs: []int{110}}, []string{"110", "110>111", "110>120", "110>121", "110>130", "110>131"}},
		{Match{PIDs: []int{170}}, []string{"170"}}, {Match{Name: "odd"}, []string{"170"}},
		{Match{Name: "nothing"}, nil}, {Match{Name: "server.properties"}, nil},
	} {
		var got []string
		for pid, p := range readProcesses(root, pids, &c.match) {
			switch {
			case p.Ancestor != nil:
				got = append(got, fmt.Sprintf("%d>%d", p.Ancestor.PID, pid))
			case p.matched:
				got = append(got, strconv.Itoa(pid))
			}
			if c.match.owner(p.Owner) != p.matched {
				t.Errorf("%+v: process %d is matched by its owner only", c.match, pid)
			}
		}
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.match, got, c.want)
		}
	}
}

// TestReadProcess_DamagedStat reads lines of /proc/PID/stat that are none.
func TestReadProcess_DamagedStat(t *testing.T) {
	for _, stat := range []string{"", "7", "7 (a", "7 )a(", "7 (a) S 1", "7 (a) S x 1 1 0"} {
		if err := (&process{}).parseStat([]byte(stat)); err == nil {
			t.Errorf("%q was read", stat)
		}
	}
}
