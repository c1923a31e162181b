package guard

import (
	"reflect"
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/predict"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestPredicted_KeepsPredictions checks that the guard removes nothing from predictions over the lab's paths.
func TestPredicted_KeepsPredictions(t *testing.T) {
	for _, p := range link.Profiles() {
		path := must.Get(link.Parse(p.Name))(t)
		for _, setup := range []predict.Setup{{}, {Bytes: 300_000}, {ReceiveBuffer: 48 << 10}, {SendBuffer: 24 << 10},
			{Direction: transfer.Down, Connections: 3}, {Congestion: "bbr"}} {
			answer, err := predict.Transfer(path, setup)
			if err != nil {
				continue
			}
			lane := path.Up
			if setup.Direction == transfer.Down {
				lane = path.Down
			}
			got := &record.Predict{Path: record.PredictPath{RateBps: float64(lane.Rate), RTTS: path.RTT.Seconds()},
				Connections: setup.Connections, Answer: *answer}
			want := *got
			got.Caps = slices.Clone(answer.Caps)
			if Predicted(got); !reflect.DeepEqual(*got, want) {
				t.Errorf("%s, %+v: %+v, want %+v", p.Name, setup, got.Answer, want.Answer)
			}
		}
	}
}
