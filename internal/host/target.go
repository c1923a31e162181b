package host

import (
	"runtime"

	"github.com/fullpipe-net/fullpipe/internal/plan"
)

// Target returns the running system as a plan's target; version is a snapshot's, or "".
func Target(version string) plan.Target {
	name := map[string]string{"windows": "windows-10", "darwin": "macos"}[runtime.GOOS]
	if name == "" {
		name = runtime.GOOS
	}
	if runtime.GOOS == "linux" && version != "" {
		name = plan.KernelTarget("linux " + version)
	}
	target, err := plan.ParseTarget(name)
	if err != nil {
		return plan.Target{Name: name}
	}
	return target
}
