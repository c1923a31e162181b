package report

import (
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/watch/paths"
)

// PathShifts are an event's shifts as documents have them: the keys of the two values depend on the metric.
func PathShifts(e *paths.Event) (all []record.PathShift) {
	for i := range e.Shifts {
		s := &e.Shifts[i]
		one := record.PathShift{Networks: e.Networks, Judged: e.Judged, Metric: string(s.Metric), Since: s.Since.UTC(),
			Back: s.Back, BeforeECN: s.BeforeWord, AfterECN: s.AfterWord}
		if e.Network.IsValid() {
			one.Network = e.Network.String()
		}
		before := s.Before
		after := s.After
		switch s.Metric {
		case paths.RTT:
			one.BeforeRTTMinS = &before
			one.AfterRTTMinS = &after
		case paths.Rate:
			one.BeforeBps = &before
			one.AfterBps = &after
		case paths.Loss, paths.Reordering:
			one.BeforeRatio = &before
			one.AfterRatio = &after
		case paths.MTU:
			one.BeforeBytes = &before
			one.AfterBytes = &after
		}
		all = append(all, one)
	}
	return all
}
