package guard

import (
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
	}
	removed := check(predictionRelations, s, drop{
		"goodput": func() {
			d.Range = predict.Range{}
			d.Limiter = verdict.Unknown
			d.Subtype = ""
			d.Gain = 0
		},
		"next":      func() { d.Next = nil },
		"time":      func() { d.Time = predict.Times{} },
		"bdp_bytes": func() { d.BDPBytes = 0 }})
	if removed > 0 {
		d.Sure = false
	}
}
