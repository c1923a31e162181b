package web

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/a-h/templ"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/testenv/hostile"
)

// ours are the scripts of the pages.
var ours = []string{"times.js", "live.js", "fleet.js", "series.js", "retest.js", "diagnose.js", "test.js"}

// filled returns data of a page whose texts are all an attack.
func filled[T any](attack string) T {
	var data T
	hostile.Fill(&data, attack)
	return render.Document(data)
}

// everyPage returns every page, made of data whose texts are all an attack.
func everyPage(v view, attack string) map[string]templ.Component {
	series := filled[*seriesView](attack)
	running := *series
	running.Retest = &retestView{Now: series.Retest.Now, Last: series.Retest.Last}
	other := *series
	other.Retest = &retestView{Other: series.Retest.Other}
	refused := *series
	refused.Retest = &retestView{Why: attack}
	run := runView{ID: attack, PathKey: attack, Far: attack, At: series.Path.Newest, Script: true,
		Labels: map[string]string{attack: attack}, Unconfirmed: filled[*unconfirmedView](attack), Body: templ.NopComponent}
	return map[string]templ.Component{
		"grid": gridPage(v, filled[*gridView](attack)), "series": seriesPage(v, series),
		"a series that is tested": seriesPage(v, &running), "another is tested": seriesPage(v, &other),
		"a series without tests": seriesPage(v, &refused), "run": runPage(v, run),
		"compare": comparePage(v, filled[*record.Difference](attack)), "live": livePage(v, true),
		"login": loginPage(attack, true), "opened": openedPage("/s/x/"), "refused": refusedPage(v, attack, attack),
		"test": testPage(v, 22, 4), "tested": testedPage(v, filled[*testedView](attack)),
		"fleet": fleetPage(v, filled[*FleetGrid](attack)), "hosts": fleetHostsPage(v, filled[*FleetHosts](attack)),
		"runs": fleetRunsPage(v, filled[*FleetRuns](attack)), "events": fleetEventsPage(v, filled[*FleetEvents](attack)),
		"incidents": fleetIncidentsPage(v, filled[*FleetIncidents](attack)),
		"mesh":      fleetMeshPage(v, filled[*FleetMesh](attack)),
	}
}

// TestHostileTexts_StayText fills every text of every page with texts that attack each place of a page. No page runs or
// loads anything but the program's scripts, and none leads to another host.
func TestHostileTexts_StayText(t *testing.T) {
	for _, attack := range hostile.Texts {
		for _, v := range []view{{Base: "/s/x", Operator: true, Tests: true, Version: attack, Note: attack, Here: attack},
			{Public: true, Version: attack}, {Fleet: true, Version: attack, Note: attack}} {
			for name, page := range everyPage(v, attack) {
				var text bytes.Buffer
				if err := page.Render(t.Context(), &text); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for _, found := range hostile.ActiveContent(text.String()) {
					script, _ := strings.CutPrefix(found, "script /static/")
					if !slices.Contains(ours, script) {
						t.Errorf("%s: %q: active content %q", name, attack, found)
					}
				}
			}
		}
	}
}
