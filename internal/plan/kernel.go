package plan

import (
	"strconv"
	"strings"
)

// firstWindows11 is the first build of Windows 11 (learn.microsoft.com, Windows 11 release information).
const firstWindows11 = 22000

// KernelTarget turns "Linux 6.18.44", "windows 10.0.22631" or "darwin" into a plan's target.
func KernelTarget(kernel string) string {
	name, version, _ := strings.Cut(strings.ToLower(kernel), " ")
	numbers := strings.SplitN(version, ".", 3)
	switch {
	case name == "darwin":
		return "macos"
	case name == "windows" && len(numbers) == 3:
		if build, err := strconv.Atoi(numbers[2]); err == nil && build >= firstWindows11 {
			return "windows-11"
		}
		return "windows-10"
	case len(numbers) >= 2:
		return name + "-" + numbers[0] + "." + strings.SplitN(numbers[1], "-", 2)[0]
	}
	return name
}
