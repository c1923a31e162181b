package plan

import (
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Now is what one connection gets with the target's present settings at both ends, when its program sets no buffers.
type Now struct {
	GoodputBps float64      `json:"goodput_bps"`
	Limiter    verdict.Name `json:"limiter"` // receiver-window, send-buffer or bottleneck
}

// LinuxWindow returns the largest window in bytes of a receive buffer for segments of mss bytes. advWinScale is
// net.ipv4.tcp_adv_win_scale, which Linux 6.6 and later ignore; "" is its default, 1. An empty version is an old one.
func LinuxWindow(version, advWinScale string, buffer, mss int) int {
	if catalog.AtLeast(version, "6.6") {
		return model.LinuxReceiveWindow(buffer, mss)
	}
	scale, err := strconv.Atoi(advWinScale)
	if err != nil {
		scale = 1
	}
	return model.LinuxScaledWindow(buffer, scale)
}

func (v present) linuxWindow(buffer, mss int) int {
	return LinuxWindow(v.target.Version, v.value("net.ipv4.tcp_adv_win_scale"), buffer, mss)
}

// limits returns the largest receive window and the largest in-flight bytes of a sender that the present settings
// allow. MaxWindow means no limit. ok is false for systems whose limits no model describes.
func (v present) limits(mss int) (window, inFlight int, ok bool) {
	switch v.target.Family {
	case catalog.Linux:
		receive := v.largestBuffer("net.ipv4.tcp_rmem")
		send := v.largestBuffer("net.ipv4.tcp_wmem")
		if receive <= 0 || send <= 0 {
			return 0, 0, false
		}
		window = v.linuxWindow(receive, mss)
		if v.value("net.ipv4.tcp_window_scaling") == "0" {
			window = min(window, model.MaxUnscaled)
		}
		return window, model.LinuxAutomaticInFlight(send), true
	case catalog.Windows:
		window = AutotuningWindow(v.value("AutoTuningLevelLocal"))
		return window, model.MaxWindow, window > 0 && catalog.AtLeast(v.target.Version, dynamicSendBuffers)
	case catalog.Windows2000:
		window, _ = strconv.Atoi(v.value("TcpWindowSize"))
		inFlight, _ = strconv.Atoi(v.value("DefaultSendWindow"))
		return WholeSegments(window, mss), inFlight, window > 0 && inFlight > 0
	}
	return 0, 0, false
}

// ceilings returns the largest windows and buffers that the present settings of a system without fixed windows allow;
// a plan lowers none. 0 is not known.
func (v present) ceilings(mss int) (window, inFlight int) {
	if window, inFlight, ok := v.limits(mss); ok {
		return window, inFlight
	}
	number := func(name string) int {
		n, _ := strconv.Atoi(v.value(name))
		return max(n, 0)
	}
	switch v.target.Family {
	case catalog.FreeBSD:
		usable := number("kern.ipc.maxsockbuf") / 2304 * 2048
		return min(number("net.inet.tcp.recvbuf_max"), usable), min(number("net.inet.tcp.sendbuf_max"), usable)
	case catalog.NetBSD:
		return number("net.inet.tcp.recvbuf_max"), number("net.inet.tcp.sendbuf_max")
	case catalog.MacOS:
		return number("net.inet.tcp.autorcvbufmax"), number("net.inet.tcp.autosndbufmax")
	case catalog.OpenBSD:
		return openBSDLargest, openBSDLargest
	case catalog.Windows: // before dynamic send buffers
		return AutotuningWindow(v.value("AutoTuningLevelLocal")), model.DefaultAFDQuota
	}
	return 0, 0
}

// largestBuffer returns the third number of tcp_rmem or tcp_wmem, 0 where there is none.
func (v present) largestBuffer(name string) int {
	fields := strings.Fields(v.value(name))
	if len(fields) != 3 {
		return 0
	}
	n, _ := strconv.Atoi(fields[2])
	return n
}

// judgeNow computes Now for a path with the same rate both ways.
func (p *Plan) judgeNow(v present) {
	window, inFlight, ok := v.limits(p.Path.MSS)
	if !ok || len(p.Directions) > 0 {
		return
	}
	goodput, capacity := p.Path.Goodput(window, inFlight)
	p.Now = &Now{GoodputBps: goodput, Limiter: verdict.Bottleneck}
	if !p.bounded { // larger present settings stay
		p.ExpectedBps = max(p.ExpectedBps, goodput)
	}
	switch {
	case !Limits(goodput, capacity):
	case inFlight < window:
		p.Now.Limiter = verdict.SendBuffer
	default:
		p.Now.Limiter = verdict.ReceiverWindow
	}
}
