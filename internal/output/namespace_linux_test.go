package output

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// inNamespace runs the test again in a mount namespace that ends with it.
func inNamespace(t *testing.T) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "OUTPUT_MOUNTED="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil && os.Getenv("CI") != "true" {
		t.Skipf("no mount namespace here: %v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
