package link

import (
	"fmt"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
)

// ofPlan returns the stack of a system that plan knows and that has no description here. Its windows and buffers are
// the catalog's defaults; the rest is Linux's or, without window scaling, that of the old systems.
func ofPlan(name string) (Stack, bool) {
	target, err := plan.ParseTarget(name)
	if err != nil {
		return Stack{}, false
	}
	s := Stack{Name: target.Name, Source: "the catalog's defaults (fullpipe explain): windows and send buffers"}
	d := target.Defaults()
	switch target.Family {
	case catalog.Linux:
		s.Sysctls = modern(d.ReceiveBuffer, d.SendBuffer)
		s.Source = ""
		s.About = target.Name + "'s default buffers"
		return s, true
	case catalog.Windows:
		same := server2012()
		s.Sysctls = same.Sysctls
		s.LargestWindow = same.LargestWindow
		s.InitialWindow = d.InitialWindow
	case catalog.Windows2000, catalog.Windows9x, catalog.Solaris, catalog.AIX:
		s.Sysctls = old()
	default:
		s.Sysctls = modern("4096 131072 4194304", "4096 16384 4194304")
	}
	if d.Congestion == "cubic" || d.Congestion == "newreno" {
		s.state("ipv4.tcp_congestion_control", map[string]string{"cubic": "cubic", "newreno": "reno"}[d.Congestion])
	}
	if !d.Scales {
		s.state("ipv4.tcp_window_scaling", "0")
	}
	s.About = "the catalog's defaults:"
	switch {
	case d.FixedWindow > 0:
		s.Window = d.FixedWindow
		s.About += fmt.Sprintf(" window of %d bytes", d.FixedWindow)
	case s.LargestWindow > 0:
		s.About += fmt.Sprintf(" automatic windows up to %d bytes", s.LargestWindow)
	default:
		largest := 2 * model.LinuxBufferFor(d.LargestWindow, ethernetMSS)
		s.state("ipv4.tcp_rmem", fmt.Sprintf("4096 131072 %d", largest))
		s.About += fmt.Sprintf(" automatic windows up to %d bytes", d.LargestWindow)
	}
	if d.InFlight > 0 {
		s.SenderRule = fmt.Sprintf("afd:%d", d.InFlight)
		s.About += fmt.Sprintf(", at most %d bytes unacknowledged", d.InFlight)
	}
	return s, true
}

const ethernetMSS = plan.DefaultMSS

// Systems returns the names that FindStack takes besides those of Stacks: every system that plan knows.
func Systems() (names []string) {
	own := Stacks()
	for _, name := range plan.Targets() {
		if !slices.ContainsFunc(own, func(s Stack) bool { return s.Name == name }) {
			names = append(names, name)
		}
	}
	return names
}
