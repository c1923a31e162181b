package host

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestConfigured_Precedence reads all directories of sysctl.d(5): a file in /etc replaces one of the same name in
// /usr/lib.
func TestConfigured_Precedence(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(root, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	write("lib/10-a.conf", "net.core.rmem_max = 1\n")
	near := write("etc/10-a.conf", "# net.core.wmem_max = 3\n-net/core/rmem_max=2\nkernel.pid_max = 4194304\n")
	lib := write("lib/20-b.conf", "net.ipv4.tcp_sack = 1\n")
	write("lib/30-off.conf", "net.ipv4.tcp_sack = 0\n")
	must.Do(t, os.Symlink("/dev/null", filepath.Join(root, "etc/30-off.conf")))
	last := write("sysctl.conf", "net.ipv4.tcp_ecn = 1")
	got, err := configured(last, filepath.Join(root, "lib"), filepath.Join(root, "none"), filepath.Join(root, "etc"))
	want := []audit.Configured{{File: near, Name: "net.core.rmem_max", Value: "2"},
		{File: lib, Name: "net.ipv4.tcp_sack", Value: "1"}, {File: last, Name: "net.ipv4.tcp_ecn", Value: "1"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestReadConfigured_ThisHost reads this host's own files.
func TestReadConfigured_ThisHost(t *testing.T) {
	if err := readConfigured(&audit.Snapshot{}); err != nil {
		t.Error(err)
	}
}
