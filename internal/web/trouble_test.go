package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func TestTroubleOf(t *testing.T) {
	usual := 100e6
	direction := func(against record.Standing, bps float64, outcome record.Outcome) record.KeptDirection {
		return record.KeptDirection{Results: []record.KeptPoint{
			{Against: record.NoFigures, Outcome: record.Failed}, // over
			{Against: against, GoodputBps: &bps, UsualBps: &usual, Outcome: outcome}}}
	}
	limited := func(limiters ...string) (d record.KeptDirection) {
		for i, name := range limiters {
			name, accepted := strings.CutSuffix(name, "!")
			d.Results = append(d.Results, record.KeptPoint{Outcome: record.Done, Against: record.AsUsual, Limiter: name,
				Accepted: accepted, StartedAt: time.Unix(int64(i), 0)})
		}
		return d
	}
	limits := func(limiters ...string) []record.KeptDirection { return []record.KeptDirection{limited(limiters...)} }
	same := direction(record.AsUsual, 99e6, record.Done)
	some := direction(record.Lower, 60e6, record.Done)
	lowest := direction(record.Lower, 20e6, record.Done)
	fallen := limited("bottleneck", "receiver-window", "receiver-window")
	fallen.Results[2].Against = record.Lower
	fallen.Results[2].GoodputBps = &usual
	fallen.Results[2].UsualBps = new(float64)
	*fallen.Results[2].UsualBps = 200e6
	route := []record.PathChange{{Metric: "rtt", At: time.Unix(1, 0)}, {Metric: "limiter", At: time.Unix(1, 0)}}
	for name, c := range map[string]struct {
		directions []record.KeptDirection
		changes    []record.PathChange
		want       trouble
	}{
		"no results":    {nil, nil, trouble{}},
		"as usual":      {[]record.KeptDirection{same}, nil, trouble{}},
		"no figures":    {[]record.KeptDirection{direction(record.NoFigures, 0, record.Done)}, nil, trouble{}},
		"one direction": {[]record.KeptDirection{same, some}, nil, trouble{lower, 0.6}},
		"both":          {[]record.KeptDirection{lowest, some}, nil, trouble{lower, 0.2}},
		"failed": {[]record.KeptDirection{lowest, direction(record.NoFigures, 0, record.Failed)}, nil,
			trouble{kind: failed}},
		"a setting":              {limits("send-buffer", "send-buffer"), nil, trouble{kind: bySetting}},
		"a setting, once":        {limits("bottleneck", "bottleneck", "send-buffer"), nil, trouble{}},
		"a setting after a fall": {[]record.KeptDirection{fallen}, nil, trouble{bySetting, 0.5}},
		"the link":               {limits("bottleneck", "bottleneck"), nil, trouble{}},
		"accepted":               {limits("receiver-window!", "receiver-window", "receiver-window"), nil, trouble{}},
		"accepted, then another": {limits("receiver-window!", "send-buffer", "send-buffer"), nil,
			trouble{kind: bySetting}},
		"accepted before":           {limits("bottleneck!", "send-buffer", "send-buffer"), nil, trouble{kind: bySetting}},
		"another route":             {limits("bottleneck", "bottleneck"), route, trouble{kind: otherRoute}},
		"another route, accepted":   {limits("bottleneck", "bottleneck!"), route, trouble{}},
		"a setting, another route":  {limits("send-buffer", "send-buffer"), route, trouble{kind: bySetting}},
		"only another limiter, now": {limits("bottleneck", "congestion"), route[1:], trouble{}},
	} {
		if got := troubleOf(c.directions, c.changes); got != c.want {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
}

// TestAccept checks that a path that a buffer limits is trouble until somebody accepts it, by the API or by the form,
// and again when another setting limits it.
func TestAccept(t *testing.T) {
	s, _, _ := newTestServer(t, Config{Opening: "opening-token-0123"})
	base, cookie := openedBy(t, s, "opening-token-0123")
	visit := func(method, path string) (int, string) {
		answer := ask(s, method, path, func(r *http.Request) {
			r.AddCookie(cookie)
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		})
		return answer.Code, answer.Body.String()
	}
	at := time.Date(2026, 10, 2, 0, 30, 0, 0, time.UTC)
	add := func(n int, limiter verdict.Name) {
		doc := measureDocument(at.Add(time.Duration(n)*time.Minute), 7000+n, "buffer.example.net", 9e6)
		doc.Directions[0].Limiter = limiter
		encoded, err := record.Encode(doc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.cfg.History.Add(t.Context(), encoded, nil); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 6 {
		add(n, verdict.ReceiverWindow)
	}
	const sum = "1 path slow by a setting you can change"
	if _, body := visit("GET", base+"/"); !strings.Contains(body, sum) {
		t.Fatalf("not in the sums: %s", body)
	}
	key := ""
	all, err := s.cfg.History.Paths(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if p.Far == "buffer.example.net" {
			key = p.Path
		}
	}
	if _, body := visit("GET", base+"/paths/"+key); !strings.Contains(body, "accept as it is") {
		t.Error("the path's page has no button")
	}
	if code, body := visit("POST", base+"/api/v1/paths/"+key+"/accept"); code != http.StatusOK ||
		!strings.Contains(body, `"accepted"`) {
		t.Errorf("%d: %s", code, body)
	}
	add(6, verdict.ReceiverWindow)
	if _, body := visit("GET", base+"/"); strings.Contains(body, sum) {
		t.Error("in the sums although it was accepted")
	}
	add(7, verdict.SendBuffer)
	add(8, verdict.SendBuffer)
	if _, body := visit("GET", base+"/"); !strings.Contains(body, sum) {
		t.Error("another setting is not in the sums")
	}
	if code, _ := visit("POST", base+"/paths/"+key+"/accept"); code != http.StatusSeeOther {
		t.Errorf("the form: %d", code)
	}
	if code, _ := visit("POST", base+"/api/v1/paths/none/accept"); code != http.StatusNotFound {
		t.Errorf("no such path: %d", code)
	}
}
