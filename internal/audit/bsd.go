package audit

import (
	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// bsd judges macOS and FreeBSD: the maxima of the automatic buffers.
func (j *judge) bsd() {
	maxima := []string{"net.inet.tcp.recvbuf_max", "net.inet.tcp.sendbuf_max"}
	usable := 2048.0 / 2304 // the usable share of kern.ipc.maxsockbuf (sys/kern/uipc_sockbuf.c)
	if j.System == catalog.MacOS {
		maxima = []string{"net.inet.tcp.autorcvbufmax", "net.inet.tcp.autosndbufmax"}
		usable = 1
	}
	for _, name := range maxima {
		if n, ok := j.number(name); ok {
			j.limit(n, Finding{Code: AutomaticBufferMax, Parameter: name, Value: j.Values[name],
				Args: []any{name, units.Size(n)}, Command: j.planCommand()})
		}
	}
	if n, ok := j.number("kern.ipc.maxsockbuf"); ok {
		window := int64(float64(n) * usable)
		j.limit(window, Finding{Code: SocketBufferMax, Parameter: "kern.ipc.maxsockbuf",
			Value: j.Values["kern.ipc.maxsockbuf"], Args: []any{units.Size(n), units.Size(window)},
			Command: j.planCommand()})
	}
	for _, a := range []struct{ auto, size string }{
		{"net.inet.tcp.recvbuf_auto", "net.inet.tcp.recvspace"}, {"net.inet.tcp.sendbuf_auto", "net.inet.tcp.sendspace"},
		{"net.inet.tcp.doautorcvbuf", "net.inet.tcp.recvspace"}, {"net.inet.tcp.doautosndbuf", "net.inet.tcp.sendspace"},
	} {
		if n, ok := j.number(a.size); ok && j.Values[a.auto] == "0" {
			j.limit(n, Finding{Code: AutomaticBufferOff, Parameter: a.auto, Value: "0", Args: []any{units.Size(n)},
				Command: "sysctl " + a.auto + "=1"})
		}
	}
	if j.Values["net.inet.tcp.rfc1323"] == "0" {
		j.limit(model.MaxUnscaled, Finding{Code: NoWindowScaling, Parameter: "net.inet.tcp.rfc1323", Value: "0",
			Command: "sysctl net.inet.tcp.rfc1323=1"})
	}
}
