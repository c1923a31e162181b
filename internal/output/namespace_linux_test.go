package output

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// inNamespace runs the test again in a mount namespace that ends with it.
func inNamespace(t *testing.T) {
	t.Helper()
	testenv.Need(t, testenv.MountNamespace)
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "OUTPUT_MOUNTED="+t.TempDir())
	cmd.SysProcAttr = testenv.Namespaces(syscall.CLONE_NEWNS)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
