package iperf3

import (
	"fmt"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
)

// logOutput makes standard output a log until end. A slow reader does not delay the server, and
// failing clients have a quota.
func (h *serverPrinter) logOutput() (end func()) {
	object := h.f.stream || console.WantsJSON(h.cmd)
	h.out = console.NewLog(h.cmd, serverlog.Config{Out: h.cmd.OutOrStdout(),
		Summary: func(_ serverlog.Kind, count int64, last string) string {
			if object {
				h.note("%d more clients failed", count)
				return last
			}
			return fmt.Sprintf("%d more clients failed, the last:\n%s", count, last)
		},
		Lost: func(count int64) string {
			text := fmt.Sprintf("%d parts of the output were lost: nobody read them in time", count)
			if object {
				h.note("%s", text)
				return ""
			}
			return text
		}})
	h.cmd.SetOut(h.out.Results())
	return h.out.Close
}

// note prints a line on standard error that the quota of standard output has counted.
func (h *serverPrinter) note(format string, args ...any) {
	if !console.IsQuiet(h.cmd) {
		_, _ = fmt.Fprintf(console.LogOf(h.cmd).Results(), format+"\n", args...)
	}
}

// printed prints the outcome of a client, with or without a test. A client without a test has a
// quota of lines on both outputs together. The caller has locked mu.
func (h *serverPrinter) printed(ran bool, print func()) {
	if ran || h.out == nil {
		print()
		return
	}
	var outText, errText strings.Builder
	out := h.cmd.OutOrStdout()
	errs := h.cmd.ErrOrStderr()
	h.cmd.SetOut(&outText)
	h.cmd.SetErr(&errText)
	print()
	h.cmd.SetOut(out)
	h.cmd.SetErr(errs)
	lines := strings.Count(outText.String(), "\n") + strings.Count(errText.String(), "\n")
	if h.out.PrintLines(serverlog.Kind{Event: "failed"}, lines, func() string {
		return strings.TrimSuffix(outText.String(), "\n")
	}) {
		_, _ = console.LogOf(h.cmd).Results().Write([]byte(errText.String()))
	}
}
