package measure

import (
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestCriteria_FailOnReadsBothSpellings gives --fail-on a subtype's word of documents and its word for people.
func TestCriteria_FailOnReadsBothSpellings(t *testing.T) {
	ceiling := verdict.Verdict{Limiter: verdict.ReceiverWindow, Subtype: verdict.AutotuneCeiling}
	zero := verdict.Verdict{Limiter: verdict.ReceiverWindow, Subtype: verdict.ScaleZero}
	for _, c := range []struct {
		on     string
		found  verdict.Verdict
		passed bool
	}{
		{"receiver-window/autotune-ceiling", ceiling, false},
		{"receiver-window/stuck", ceiling, false},
		{"receiver-window/scale-0", zero, false},
		{"receiver-window/factor-0", zero, false},
		{"receiver-window", zero, false},
		{"receiver-window/scale-0", ceiling, true},
		{"receiver-window/stuck", zero, true},
	} {
		criteria := criteriaFlags{on: []string{c.on}}
		if err := criteria.check(); err != nil {
			t.Fatal(c.on, err)
		}
		got := criteria.judge(transfer.Up, nil, c.found, losses{})
		if len(got) != 1 || got[0].Passed != c.passed || got[0].Limiter != "receiver-window/"+c.found.Subtype {
			t.Errorf("%s, %s: %+v", c.on, c.found.Subtype, got)
		}
		if slices.ContainsFunc(got[0].Refused, func(s string) bool { return strings.HasSuffix(s, "-ceiling") }) {
			t.Errorf("%s: the document has %s", c.on, got[0].Refused)
		}
	}
}

func TestCriteria_FailOnRejectsUnknownWords(t *testing.T) {
	for _, on := range []string{"receiver-window/scale-1", "congestion/stuck", "stuck", "receiver-window/",
		"lost-at:", "lost-at:moon"} {
		criteria := criteriaFlags{on: []string{on}}
		if err := criteria.check(); err == nil {
			t.Errorf("%q is accepted", on)
		}
	}
}

// TestCriteria_FailOnPlacesOfLoss checks that a place fails where packets were lost there, and where
// that is not known.
func TestCriteria_FailOnPlacesOfLoss(t *testing.T) {
	row := func(place, side, watched string, share float64) record.LostAt {
		return record.LostAt{Place: place, Side: side, Watched: watched, Share: &share}
	}
	firewall := row("firewall", record.ReceiverHost, record.BothHosts, 1)
	half := row("firewall", record.ReceiverHost, record.BothHosts, 0.5)
	elsewhere := row(record.Elsewhere, "", record.SenderHost, 1)
	container := elsewhere
	container.NamespaceOnly = true
	for _, tt := range []struct {
		on     string
		lost   losses
		passed bool
		found  string
	}{
		{"lost-at:firewall", losses{places: []record.LostAt{firewall}}, false, "receiver-host/firewall"},
		{"lost-at:receiver-host", losses{places: []record.LostAt{firewall}}, false, "receiver-host/firewall"},
		{"lost-at:sender-host", losses{places: []record.LostAt{firewall}}, true, "receiver-host/firewall"},
		{"lost-at:queue,lost-at:firewall", losses{places: []record.LostAt{firewall}}, false, "receiver-host/firewall"},
		{"lost-at:queue", losses{places: []record.LostAt{half}}, false, "receiver-host/firewall"},
		{"lost-at:sender-host", losses{places: []record.LostAt{elsewhere}}, true, "elsewhere"},
		{"lost-at:sender-host", losses{places: []record.LostAt{container}}, false, "elsewhere"},
		{"lost-at:receiver-host", losses{places: []record.LostAt{elsewhere}}, false, "elsewhere"},
		{"lost-at:between-hosts", losses{places: []record.LostAt{elsewhere}}, false, "elsewhere"},
		{"lost-at:between-hosts", losses{none: true}, true, ""},
		{"lost-at:between-hosts", losses{}, false, ""},
	} {
		criteria := criteriaFlags{on: strings.Split(tt.on, ",")}
		if err := criteria.check(); err != nil {
			t.Fatal(tt.on, err)
		}
		got := criteria.judge(transfer.Up, nil, verdict.Verdict{Limiter: verdict.Congestion}, tt.lost)
		if len(got) != 1 || got[0].Passed != tt.passed || strings.Join(got[0].LostAt, " ") != tt.found {
			t.Errorf("%s of %+v: %+v", tt.on, tt.lost, got)
		}
	}
}
