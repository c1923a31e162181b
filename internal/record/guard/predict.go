package guard

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/predict"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Predicted checks the figures of a prediction. One that lost a figure is not sure.
func Predicted(d *record.Predict) {
	s := scope{"rate_bps": d.Path.RateBps, "goodput_low_bps": d.Low, "goodput_bps": d.Typical,
		"goodput_high_bps": d.High, "time_low_s": d.Time.Low.Seconds(), "time_s": d.Time.Typical.Seconds(),
		"time_high_s": d.Time.High.Seconds(), "bdp_bytes": float64(d.BDPBytes),
		"product_bytes": d.Path.RateBps / 8 * d.Path.RTTS}
	if n := d.Next; n != nil {
		s["next_low_bps"] = n.Low
		s["next_bps"] = n.Typical
		s["next_high_bps"] = n.High
		if d.Limiter != verdict.Mixed { // the next one of a mixed prediction is without all of its candidates
			s["gained_bps"] = d.Gain * d.Typical
		}
	}
	each := float64(max(d.Connections, 1))
	s["window_bytes"] = float64(d.WindowBytes)
	s["flight_bytes"] = d.Typical / 8 * d.Path.RTTS / each
	removed := check(predictionRelations, s, drop{
		"goodput": func() {
			d.Range = predict.Range{}
			d.Limiter = verdict.Unknown
			d.Subtype = ""
			d.Gain = 0
		},
		"next":         func() { d.Next = nil },
		"time":         func() { d.Time = predict.Times{} },
		"gain":         func() { d.Gain = 0 },
		"window_bytes": func() { d.WindowBytes = 0 },
		"bdp_bytes":    func() { d.BDPBytes = 0 }})
	kept := len(d.Caps)
	d.Caps = slices.DeleteFunc(d.Caps, func(c predict.Cap) bool { return capContradicts(c, d) })
	removed += kept - len(d.Caps)
	if removed > 0 {
		d.Sure = false
	}
}

// capContradicts reports whether a bound contradicts the prediction, the path's rate or its own formula. Bounds by
// losses and by slow start are estimates, which a prediction may exceed.
func capContradicts(c predict.Cap, d *record.Predict) bool {
	s := scope{}
	switch c.Limiter {
	case verdict.Bottleneck:
		s["line_cap_bps"] = c.Bps
		s["rate_bps"] = d.Path.RateBps
	case verdict.ReceiverWindow:
		s["window_cap_bps"] = c.Bps
		if d.Path.RTTS > 0 {
			s["window_rate_bps"] = float64(max(d.Connections, 1)*d.WindowBytes) * 8 / d.Path.RTTS
		}
	default:
		return false
	}
	s["goodput_bps"] = d.Typical
	s["cap_bps"] = c.Bps
	return check(predictionRelations, s, drop{"cap": func() {}}) > 0
}
