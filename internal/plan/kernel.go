package plan

import "strings"

// KernelTarget turns "Linux 6.18.44" into a plan's target.
func KernelTarget(kernel string) string {
	name, version, _ := strings.Cut(strings.ToLower(kernel), " ")
	numbers := strings.SplitN(version, ".", 3)
	if len(numbers) >= 2 {
		return name + "-" + numbers[0] + "." + strings.SplitN(numbers[1], "-", 2)[0]
	}
	return name
}
