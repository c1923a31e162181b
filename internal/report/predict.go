package report

import (
	"github.com/fullpipe-net/fullpipe/internal/predict"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Predict fills in what was predicted.
func Predict(d *record.Predict, a *predict.Answer) {
	d.Goodput = record.PredictRange{LowBps: a.Low, TypicalBps: a.Typical, HighBps: a.High}
	d.Limiter = a.Limiter
	d.Subtype = a.Subtype
	d.Sure = a.Sure
	d.GainFactor = a.Gain
	if a.Next != nil {
		d.Next = &record.PredictNext{Limiter: a.Next.Limiter, PredictRange: record.PredictRange{LowBps: a.Next.Low,
			TypicalBps: a.Next.Typical, HighBps: a.Next.High}}
	}
	if a.Time.Typical > 0 {
		d.Time = &record.PredictTimes{LowS: a.Time.Low.Seconds(), TypicalS: a.Time.Typical.Seconds(),
			HighS: a.Time.High.Seconds()}
	}
	d.Candidates = a.Candidates
	d.BDPBytes = int64(a.BDP)
	d.WindowBytes = a.Window
	d.InFlightBytes = a.SendBytes
	d.Caps = []record.PredictCap{}
	d.Warnings = append([]string{}, a.Warnings...)
	for _, c := range a.Caps {
		d.Caps = append(d.Caps, record.PredictCap{Limiter: c.Limiter, Bps: c.Bps, Text: c.Text})
	}
}
