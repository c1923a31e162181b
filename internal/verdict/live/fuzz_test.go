package live

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// FuzzJudge checks that the shares sum to 1 for any samples, which a far end sends over the network.
func FuzzJudge(f *testing.F) {
	result := steady(20e6, 40*ms, func(i int, s, r *transfer.Sample) { s.RwndLimited = s.At / 2 })
	result.Near.Streams[0].Samples = result.Near.Streams[0].Samples[:5]
	result.Far.Streams[0].Samples = result.Far.Streams[0].Samples[:5]
	seed, err := json.Marshal(result)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add([]byte(`{"spec":{"direction":"down"},"near":{"streams":[{"samples":[{"at_ns":1},{"at_ns":9223372036854775807}]}]}}`))
	f.Add([]byte(`{"spec":{"direction":"up"},"near":{"streams":[{},{"first_ns":-9223372036854775808,"samples":[{"at_ns":1}]}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r transfer.Result
		if json.Unmarshal(data, &r) != nil {
			return
		}
		v := Judge(&r)
		sum := 0.0
		for _, share := range v.Shares {
			sum += share
		}
		if math.IsNaN(sum) || math.Abs(sum-1) > 1e-6 {
			t.Errorf("shares sum to %v: %v", sum, v.Shares)
		}
		for _, e := range v.Evidence {
			for name, value := range e.Values {
				if math.IsNaN(value) || math.IsInf(value, 0) {
					t.Errorf("%s: %s is %v", e.Code, name, value)
				}
			}
		}
	})
}
