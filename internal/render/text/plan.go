package text

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Plan prints the plan.
func Plan(w io.Writer, d *record.Plan) {
	if d.RateBps > 0 && d.RTTS > 0 && d.MSSBytes > 0 {
		writePlanSizes(w, d)
	}
	writePlanApp(w, d.App)
	writePlanTunnel(w, d.Tunnel)
	writePlanShared(w, d)
	if d.Window != nil {
		writeWindowAnswer(w, d.Window, d.RateBps, d.RTTS)
	}
	if d.Target == "" {
		return
	}
	host := d.Target
	if d.End != "" {
		host += ", the " + d.End + " host"
	}
	fmt.Fprintf(w, "\nsettings of %s\n", host)
	WriteSettings(w, d.Settings)
	for _, text := range d.Warnings {
		fmt.Fprintln(w, hanging(w, "  warning: ", text))
	}
	for _, text := range d.Notes {
		fmt.Fprintln(w, hanging(w, "  note: ", text))
	}
}

func writePlanSizes(w io.Writer, d *record.Plan) {
	t := newTable()
	path := fmt.Sprintf("%s x %s", units.Rate(d.RateBps), SecondsText(d.RTTS))
	if d.JitterS > 0 {
		path += ", " + SecondsText(d.JitterS) + " of jitter"
	}
	if len(d.Directions) > 0 {
		writePlanDirections(t, d)
	} else {
		writePlanBothWays(t, d, path)
	}
	t.row("memory", both(d.MemoryBytes), fmt.Sprintf("%d connection%s, buffers full", d.Connections,
		plural(d.Connections)))
	t.write(w, "")
}

// writePlanBothWays prints a path that is the same in both directions.
func writePlanBothWays(t *table, d *record.Plan, path string) {
	t.row("path", path, fmt.Sprintf("MSS %d", d.MSSBytes))
	t.row("bandwidth-delay product", both(d.BDPBytes), fmt.Sprintf("%.2f segments",
		float64(d.BDPBytes)/float64(d.MSSBytes)))
	t.row("receive window", units.Size(d.ReceiveWindowBytes).Exact(), fmt.Sprintf("%d x %d", d.Segments, d.MSSBytes))
	t.row("send buffer", units.Size(d.SendBufferBytes).Exact())
	if d.LargeWindows != nil && d.WindowScale != nil && *d.LargeWindows {
		unscaled := model.LargestUnscaled(d.MSSBytes)
		t.row("large windows", fmt.Sprintf("needed at both ends, scale %d", *d.WindowScale),
			fmt.Sprintf("%s allow %s", units.Size(unscaled).Exact(),
				units.Rate(model.Rate(unscaled, units.Seconds(d.RTTS+d.JitterS)))))
	} else {
		t.row("large windows", "not needed")
	}
	if d.ExpectedGoodputBps > 0 && len(d.Paths) == 0 { // the directions have it for each path
		writePlanGoodput(t, d)
	}
}

// writePlanGoodput prints the goodput with the present and the planned settings: of one connection, and of all.
func writePlanGoodput(t *table, d *record.Plan) {
	bounded := d.App != nil && d.App.AllowsBps > 0 // by the program's window
	row := func(label string, one, all float64, remark string) {
		if d.TotalGoodputBps <= 0 {
			t.row(label, units.Rate(one).String(), remark)
			return
		}
		line := d.TotalGoodputBps / d.TotalFillsRatio
		if bounded {
			all = min(all, float64(d.Connections)*d.App.AllowsBps)
		}
		t.row(label, units.Rate(all).String(), fmt.Sprintf("%d connections together, %s of what the line carries",
			d.Connections, percent(all/line)))
		t.row("  one alone", units.Rate(one).String(), remark)
	}
	if d.Now != nil {
		now := d.Now.GoodputBps
		limited := ""
		if d.Now.Limiter != verdict.Bottleneck {
			limited = "limited by " + string(d.Now.Limiter)
		}
		if bounded && d.App.AllowsBps < now {
			now = d.App.AllowsBps
			limited = "limited by the program's window"
		}
		row("now", now, d.TotalNowBps, limited)
	}
	goodput := d.ExpectedGoodputBps
	fills := d.FillsRatio
	if bounded && d.App.AllowsBps < goodput {
		goodput = d.App.AllowsBps
		fills = d.App.FillsRatio
	}
	row("expected", goodput, d.TotalGoodputBps, percent(fills)+" of what the line carries")
}

// writePlanDirections prints the needs of each host in each direction.
func writePlanDirections(t *table, d *record.Plan) {
	for _, way := range d.Directions {
		from := "near"
		to := "far"
		if way.Direction == transfer.Down {
			from, to = to, from
		}
		t.row(string(way.Direction), fmt.Sprintf("%s x %s", units.Rate(way.RateBps), SecondsText(d.RTTS)),
			"bandwidth-delay product "+both(way.BDPBytes))
		t.row("", "send buffer of the "+from+" host", units.Size(way.WindowBytes).Exact())
		window := units.Size(way.WindowBytes).Exact() + ", no scaling needed"
		if way.WindowScale > 0 {
			window = fmt.Sprintf("%s, scale %d", units.Size(way.WindowBytes).Exact(), way.WindowScale)
		}
		t.row("", "receive window of the "+to+" host", window)
		t.row("", "expected", units.Rate(way.ExpectedBps).String()+", "+percent(way.Fills)+" of what the line carries")
	}
}

// writePlanShared shows how well one window suits each of several paths.
func writePlanShared(w io.Writer, d *record.Plan) {
	if len(d.Paths) == 0 {
		return
	}
	send := ""
	if d.SharedSendBytes > 0 && d.SharedSendBytes != d.SharedWindowBytes && d.Role != plan.Receiver {
		send = fmt.Sprintf(", a send buffer of %s", units.Size(d.SharedSendBytes).Exact())
	}
	fmt.Fprintf(w, "\none window of %s for all%s\n", units.Size(d.SharedWindowBytes).Exact(), send)
	t := newTable()
	t.wraps = true
	for _, p := range d.Paths {
		t.row(fmt.Sprintf("%s x %s", units.Rate(p.RateBps), p.RTT), "wants "+units.Size(p.Window).String(),
			"fills "+percent(p.Goodput), added(p.Delay), units.Size(p.Memory).String()+" of memory unused")
	}
	t.write(w, "  ")
}

func added(delay units.Duration) string {
	if delay <= 0 {
		return "adds no delay"
	}
	return "adds " + delay.String() + " of delay"
}

func writeWindowAnswer(w io.Writer, a *record.WindowAnswer, rateBps, rttS float64) {
	window := units.Size(a.WindowBytes).Exact()
	if a.ToleratedRTTS > 0 {
		fmt.Fprintf(w, "a window of %s fills %s up to a round trip of %s\n", window, units.Rate(rateBps),
			SecondsText(a.ToleratedRTTS))
	}
	if a.AllowedRateBps > 0 {
		fmt.Fprintf(w, "a window of %s allows %s at a round trip of %s\n", window, units.Rate(a.AllowedRateBps),
			SecondsText(rttS))
	}
}

// WriteSettings prints settings in aligned columns.
func WriteSettings(w io.Writer, settings []plan.Setting) {
	if len(settings) == 0 {
		fmt.Fprintln(w, "  nothing to change")
		return
	}
	t := newTable()
	for _, s := range settings {
		value := s.Value
		if s.Before != "" {
			value = s.Before + " -> " + value
		}
		var remarks []string
		if s.Restart {
			remarks = append(remarks, "after a restart")
		}
		if !s.Confirmed {
			remarks = append(remarks, "not confirmed by a primary source")
		}
		t.row(string(s.Role), s.Name, value, strings.Join(remarks, ", "))
	}
	t.write(w, "  ")
	for i, s := range settings {
		earlier := slices.ContainsFunc(settings[:i], func(o plan.Setting) bool { return o.Where == s.Where })
		if earlier || !strings.HasPrefix(s.Where, "HKEY_") {
			continue
		}
		var names []string
		for _, o := range settings[i:] {
			if o.Where == s.Where {
				names = append(names, o.Name)
			}
		}
		fmt.Fprintln(w, hanging(w, "  ", "in "+s.Where+": "+strings.Join(names, ", ")))
	}
}

// both prints a size in binary and decimal units.
func both(bytes int64) string {
	if bytes < 10000 {
		return units.Size(bytes).Exact()
	}
	kB := strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(float64(bytes)/1000, 'f', 2, 64), "0"), ".")
	unit := "kB"
	if bytes >= 10e6 {
		kB = strconv.FormatFloat(float64(bytes)/1e6, 'f', 1, 64)
		unit = "MB"
	}
	return fmt.Sprintf("%s %s = %s", kB, unit, tenths(bytes))
}

// tenths prints a binary unit with one decimal: "164.8 KiB".
func tenths(bytes int64) string {
	v := float64(bytes) / 1024
	unit := "KiB"
	for _, next := range []string{"MiB", "GiB", "TiB"} {
		if v >= 1024 {
			v = v / 1024
			unit = next
		}
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " " + unit
}

// hanging wraps text after a label and lines its further lines up.
func hanging(w io.Writer, label, text string) string {
	blank := strings.Repeat(" ", len(label))
	return label + strings.TrimPrefix(indent(text, blank, render.Columns(w)), blank)
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// writePlanTunnel prints the MSS inside a tunnel, and the commands that clamp segments to it: for
// nftables, iptables and the routers of many vendors.
func writePlanTunnel(w io.Writer, tunnel *record.PlanTunnel) {
	if tunnel == nil {
		return
	}
	fmt.Fprintf(w, "\ntunnel %s on %d bytes\n", tunnel.Layers, tunnel.PathMTUBytes)
	t := newTable()
	t.wraps = true
	t.row("MTU inside", fmt.Sprintf("%d bytes", tunnel.MTUBytes), fmt.Sprintf("MSS %d", tunnel.MSSBytes))
	t.row("around a full segment", fmt.Sprintf("%d bytes", tunnel.AroundBytes),
		fmt.Sprintf("all headers %.1f %% of the packet; padding at worst %d bytes", 100*tunnel.HeaderRatio,
			tunnel.WorstPaddingBytes))
	t.write(w, "  ")
	for _, line := range tunnel.Clamp {
		fmt.Fprintln(w, "  "+line)
	}
}

// writePlanApp prints the rate that a program's own window allows.
func writePlanApp(w io.Writer, app *record.PlanApp) {
	if app == nil {
		return
	}
	fmt.Fprintf(w, "\n%s\n", app.Name)
	if app.Bytes > 0 {
		fmt.Fprintln(w,
			hanging(w, "  ", fmt.Sprintf("%s for each %s: %s. It allows %s here, %s of what the line carries",
				units.Size(app.Bytes).Exact(), app.Per, app.What, units.Rate(app.AllowsBps), percent(app.FillsRatio))))
	} else {
		fmt.Fprintln(w, hanging(w, "  ", app.What))
	}
	fmt.Fprintln(w, hanging(w, "  to raise it: ", app.Raise))
	doubt := ""
	if !app.Confirmed {
		doubt = " (not confirmed by a primary source)"
	}
	fmt.Fprintln(w, hanging(w, "  source: ", app.Source+doubt))
}
