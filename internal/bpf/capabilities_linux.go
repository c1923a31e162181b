package bpf

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// tracingCapabilities are needed for tracing. CAP_SYS_ADMIN contains both (capabilities(7)).
var tracingCapabilities = []struct {
	name string
	bit  uint
}{{"CAP_BPF", unix.CAP_BPF}, {"CAP_PERFMON", unix.CAP_PERFMON}}

// CheckTracing returns a NotPermittedError that names the missing capabilities, or nil.
func CheckTracing() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil // the kernel will say
	}
	if missing := missingIn(string(status)); len(missing) > 0 {
		return &NotPermittedError{Missing: missing}
	}
	return nil
}

// missingIn returns the capabilities that the effective set of a /proc/PID/status lacks.
func missingIn(status string) (missing []string) {
	for line := range strings.Lines(status) {
		text, is := strings.CutPrefix(line, "CapEff:")
		if !is {
			continue
		}
		set, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
		if err != nil || set&(1<<unix.CAP_SYS_ADMIN) != 0 {
			return nil
		}
		for _, c := range tracingCapabilities {
			if set&(1<<c.bit) == 0 {
				missing = append(missing, c.name)
			}
		}
	}
	return missing
}
