package report

import (
	"fmt"
	"math"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Plan is a plan as users read it.
func Plan(header record.Header, p *plan.Plan) *record.Plan {
	doc := &record.Plan{Header: header, Target: p.Target, Role: p.Role, RateBps: p.Path.RateBps,
		RTTS:    p.Path.RTT.Seconds(),
		JitterS: p.Path.Jitter.Seconds(), MSSBytes: p.Path.MSS, Connections: p.Path.Connections,
		BDPBytes: int64(math.Round(math.Min(p.BDPBytes, 1<<62))), LargeWindows: &p.LargeWindows,
		WindowScale: &p.WindowScale,
		Segments:    p.Segments, ReceiveWindowBytes: p.WindowBytes, SendBufferBytes: p.SendBytes,
		MemoryBytes: p.MemoryBytes,
		Settings:    p.Settings, Warnings: text.PlanSentences(p.Warnings), Notes: text.PlanSentences(p.Notes),
		SharedWindowBytes: p.SharedWindow, SharedSendBytes: p.SharedSend,
		Now: p.Now, Directions: p.Directions, Paths: p.Shared,
		ExpectedGoodputBps: p.ExpectedBps, FillsRatio: p.ExpectedBps / p.CapacityBps}
	if p.Path.Connections > 1 {
		doc.TotalGoodputBps, doc.TotalFillsRatio = p.Total(p.ExpectedBps)
		if p.Now != nil {
			doc.TotalNowBps, _ = p.Total(p.Now.GoodputBps)
		}
	}
	if p.Route.Prefix != "" {
		doc.Route = &p.Route
	}
	if doc.Settings == nil {
		doc.Settings = []plan.Setting{}
	}
	if doc.Warnings == nil {
		doc.Warnings = []string{}
	}
	return doc
}

// OfFarEnd turns the directions of a plan for the far host.
func OfFarEnd(d *record.Plan) {
	d.End = "far"
	for i := range d.Directions {
		way := &d.Directions[i]
		if way.Direction == transfer.Up {
			way.Direction = transfer.Down
		} else {
			way.Direction = transfer.Up
		}
	}
}

// PlanTunnel describes a tunnel's overhead on a path with segments of mss bytes.
func PlanTunnel(layers model.Tunnel, mtu, mss int) *record.PlanTunnel {
	outside := layers.Carry(mss+model.IPHeaders, mtu)
	return &record.PlanTunnel{Layers: layers.String(), PathMTUBytes: mtu, MTUBytes: layers.MTU(mtu), MSSBytes: mss,
		AroundBytes: outside - mss - model.IPHeaders, HeaderRatio: float64(outside-mss) / float64(outside),
		WorstPaddingBytes: layers.WorstPadding(mtu),
		Clamp: []string{
			fmt.Sprintf("ip link set dev TUNNEL mtu %d", layers.MTU(mtu)),
			fmt.Sprintf("nft add rule inet filter forward tcp flags syn tcp option maxseg size set %d", mss),
			fmt.Sprintf("iptables -t mangle -A FORWARD -p tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss %d", mss),
			fmt.Sprintf("ip tcp adjust-mss %d", mss),
		}}
}

// PlanApp returns the rate that a program's own window, block or buffer allows on a plan's path.
func PlanApp(program catalog.Program, p *plan.Plan) *record.PlanApp {
	app := &record.PlanApp{Program: program}
	if program.Bytes > 0 {
		app.FillsRatio = p.Path.Fills(program.Window(p.Path.RateBps, p.Path.RTT))
		app.AllowsBps = app.FillsRatio * p.CapacityBps
	}
	return app
}
