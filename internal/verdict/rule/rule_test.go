package rule

import (
	"encoding/json"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

type pair struct{ a, b float64 }

var (
	a = &Quantity[pair]{Name: "a", Unit: "ratio", Means: "the first", Of: func(p pair) float64 { return p.a }}
	b = &Quantity[pair]{Name: "b", Unit: "ratio", Means: "the second", Of: func(p pair) float64 { return p.b },
		Uses: []*threshold.Number{threshold.EvenBest}}
	isOdd = Fact("isOdd", "a is odd", func(p pair) bool { return int(p.a)%2 == 1 })
)

func TestCondition(t *testing.T) {
	large := Define("isLarge", "a is large", All(a.Above(threshold.WindowFarAbove), isOdd))
	for _, c := range []struct {
		condition Condition[pair]
		text      string
		yes, no   pair
	}{
		{a.AtLeast(threshold.FlatRate), "a >= 0.9 (FlatRate)", pair{a: 0.9}, pair{a: 0.89}},
		{a.Above(threshold.FlatRate), "a > 0.9 (FlatRate)", pair{a: 0.91}, pair{a: 0.9}},
		{a.AtMost(threshold.FlatRate), "a <= 0.9 (FlatRate)", pair{a: 0.9}, pair{a: 0.91}},
		{a.Below(threshold.FlatRate), "a < 0.9 (FlatRate)", pair{a: 0.89}, pair{a: 0.9}},
		{a.AtLeast(threshold.WindowFarAbove, b), "a >= 2 (WindowFarAbove) × b", pair{4, 2}, pair{4, 2.1}},
		{a.Above(threshold.PolicedTime), "a > 3 s (PolicedTime)", pair{a: 4e9}, pair{a: 3e9}},
		{a.Positive(), "a > 0", pair{a: 1}, pair{}},
		{a.Exceeds(b), "a > b", pair{2, 1}, pair{1, 1}},
		{Not(isOdd), "not isOdd", pair{a: 2}, pair{a: 1}},
		{Not(a.Positive()), "not (a > 0)", pair{}, pair{a: 1}},
		{All(isOdd, b.Positive()), "isOdd and b > 0", pair{1, 1}, pair{1, 0}},
		{Any(isOdd, b.Positive()), "isOdd or b > 0", pair{2, 1}, pair{2, 0}},
		{All(Any(isOdd, b.Positive()), Not(All(isOdd, b.Positive()))),
			"(isOdd or b > 0) and not (isOdd and b > 0)", pair{1, 0}, pair{1, 1}},
		{Any(large, b.Positive()), "isLarge or b > 0", pair{3, 0}, pair{4, 0}},
	} {
		if got := c.condition.Text(); got != c.text {
			t.Errorf("%s: want %s", got, c.text)
		}
		if !c.condition.IsTrue(c.yes) || c.condition.IsTrue(c.no) {
			t.Errorf("%s: %t for %v, %t for %v", c.text, c.condition.IsTrue(c.yes), c.yes, c.condition.IsTrue(c.no), c.no)
		}
	}
}

func TestOnce_EvaluatesOncePerPlace(t *testing.T) {
	n := 0
	var kept [2]Result
	c := Once(Fact("counts", "", func(pair) bool { n++; return n == 2 }), func(p pair) *Result { return &kept[int(p.a)] })
	for range 3 {
		if c.IsTrue(pair{a: 0}) || n > 2 {
			t.Fatalf("the first place: evaluated %d times", n)
		}
		if !c.IsTrue(pair{a: 1}) {
			t.Fatalf("the second place: evaluated %d times", n)
		}
	}
}

func TestAdd_ListsEachInputAndThresholdOnce(t *testing.T) {
	var l List
	Add(&l, "first", All(a.AtLeast(threshold.FlatRate), b.Positive()), "yes")
	Add(&l, "second", a.Below(threshold.FlatRate), "no", isOdd)
	Add(&l, "last", Condition[pair]{}, "else")
	if len(l.Rows) != 3 || l.Rows[2].When != "always" {
		t.Errorf("%+v", l.Rows)
	}
	if len(l.Inputs) != 3 || l.Inputs[2].Name != "isOdd" {
		t.Errorf("%+v", l.Inputs)
	}
	if len(l.Thresholds) != 2 || l.Thresholds[1].Name != "EvenBest" || l.Thresholds[0].Origin != "definition" {
		t.Errorf("%+v", l.Thresholds)
	}
}

func TestList_JSON(t *testing.T) {
	var l List
	Add(&l, "late", Define("isLate", "a is late", a.AtLeast(threshold.PolicedTime)), "yes")
	got, err := json.Marshal(l)
	const want = `{"title":"","rules":[{"name":"late","when":"isLate","outcome":"yes"}],"inputs":[` +
		`{"name":"isLate","means":"a is late","definition":"a \u003e= 3 s (PolicedTime)"},` +
		`{"name":"a","unit":"ratio","means":"the first"}],"thresholds":[{"name":"PolicedTime","value":3,"unit":"s",` +
		`"origin":"RFC 9438, 4.1: 2.5 s at 20 segments, 4.2 s at 100"}]}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
}
