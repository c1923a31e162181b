package guard

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// TestRFC6349_UndecidesContradictedCriteria changes one figure of criteria that agree with their tests.
func TestRFC6349_UndecidesContradictedCriteria(t *testing.T) {
	type criterion = record.RFC6349Criterion
	type direction = record.RFC6349Direction
	tests := []struct {
		name    string
		verdict record.RFC6349Verdict
		change  func(c *criterion, d *direction)
		want    record.RFC6349Verdict
	}{
		{"agrees", record.RFC6349Pass, func(*criterion, *direction) {}, record.RFC6349Pass},
		{"passes below the required rate", record.RFC6349Pass, func(c *criterion, d *direction) {
			*c.Measured = 8e6
			d.Tests[0].GoodputBps = new(8e6)
			c.CI95 = nil
			d.Tests[0].CI95Bps = nil
		}, record.RFC6349Inconclusive},
		{"fails above the required rate", record.RFC6349Fail, func(*criterion, *direction) {},
			record.RFC6349Inconclusive},
		{"both directions fail by their sum", record.RFC6349Fail, func(c *criterion, d *direction) {
			c.Name = "both"
			d.Tests[0].Kind = "both"
		}, record.RFC6349Fail},
		{"requires more than is due", record.RFC6349Pass, func(c *criterion, _ *direction) {
			c.Due = 8e6
		}, record.RFC6349Inconclusive},
		{"is not what its test gave", record.RFC6349Pass, func(_ *criterion, d *direction) {
			d.Tests[0].GoodputBps = new(19e6)
		}, record.RFC6349Inconclusive},
		{"its test's rate was removed", record.RFC6349Pass, func(_ *criterion, d *direction) {
			d.Tests[0].GoodputBps = nil
		}, record.RFC6349Inconclusive},
		{"a delay above the maximum passes", record.RFC6349Pass, func(c *criterion, _ *direction) {
			*c = record.RFC6349Criterion{Name: "buffer-delay", Unit: "ratio", Due: 0.5, Required: 0.5, Measured: new(1.5),
				Verdict: record.RFC6349Pass}
		}, record.RFC6349Inconclusive},
		{"a delay above the maximum fails", record.RFC6349Fail, func(c *criterion, _ *direction) {
			*c = record.RFC6349Criterion{Name: "buffer-delay", Unit: "ratio", Due: 0.5, Required: 0.5, Measured: new(1.5),
				Verdict: record.RFC6349Fail}
		}, record.RFC6349Fail},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := record.RFC6349Direction{CommittedBps: 20e6, Bottleneck: record.RFC6349Bottleneck{Bps: 20e6},
				Tests: []record.RFC6349Test{{Kind: "single", GoodputBps: new(18e6), CI95Bps: &[2]float64{17e6, 19e6}}},
				Criteria: []record.RFC6349Criterion{{Name: "single", Unit: "bps", Due: 19e6, Required: 17e6,
					Measured: new(18e6), CI95: &[2]float64{17e6, 19e6}, Verdict: test.verdict}}}
			c := &d.Criteria[0]
			test.change(c, &d)
			RFC6349(&d)
			if c.Verdict != test.want || (c.Measured == nil) != (test.want == record.RFC6349Inconclusive) {
				t.Errorf("%s, measured %v, want %s", c.Verdict, c.Measured, test.want)
			}
		})
	}
}
