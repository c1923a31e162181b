package plan

import "testing"

func TestKernelTarget(t *testing.T) {
	for kernel, want := range map[string]string{"Linux 6.18.44-fc": "linux-6.18", "Linux 7.0-rc1": "linux-7.0",
		"windows 10.0.19045": "windows-10", "windows 10.0.26100": "windows-11", "darwin": "macos", "freebsd": "freebsd"} {
		if got := KernelTarget(kernel); got != want {
			t.Errorf("%s: %s, want %s", kernel, got, want)
		} else if _, err := ParseTarget(got); err != nil {
			t.Errorf("%s: %v", kernel, err)
		}
	}
}
