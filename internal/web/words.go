package web

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// none is shown for an unknown figure.
const none = "–"

func rate(bps *float64) string {
	if bps == nil {
		return none
	}
	return units.Rate(*bps).String()
}

func seconds(s *float64) string {
	if s == nil {
		return none
	}
	return text.SecondsText(*s)
}

// when formats a time for a reader, iso for a program.
func when(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") }

func iso(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func age(t time.Time) string { return text.Age(time.Since(t)) }

func ratio(v *float64) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("× %.2f", *v)
}

func known(v *string) string {
	if v == nil {
		return "not known"
	}
	return *v
}

// rttOf returns the shortest round trip of a run that has the direction.
func rttOf(f *record.Figure) string {
	if f == nil {
		return ""
	}
	return seconds(f.RTTMinS)
}

// cellText is the letter of a cell's limiter, with an asterisk if the figures are one host's word and doubtful, and the
// goodput.
func cellText(c *FleetCell) string {
	letter := "?"
	if c.Limiter != "" {
		letter = text.Letter(c.Limiter)
	}
	if store.Doubtful(c.Unconfirmed) {
		letter += "*"
	}
	if c.GoodputBps != nil {
		letter += " " + shortRate(*c.GoodputBps)
	}
	return letter
}

// lostAtText returns a sentence about the places of loss, "" without one.
func lostAtText(places []string) string {
	if len(places) == 0 {
		return ""
	}
	return " Packets lost at: " + render.Line(strings.Join(places, ", ")) + "."
}

// shortRate returns a goodput without its unit, for a cell: 93M.
func shortRate(bps float64) string {
	for _, one := range []struct {
		unit   float64
		letter string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v := bps / one.unit; v >= 0.995 {
			return text.Trimmed(v) + one.letter
		}
	}
	return text.Trimmed(bps)
}

// dueText says when a test is due.
func dueText(left time.Duration) string {
	if left <= 0 {
		return "is due"
	}
	if left <= 2*time.Hour {
		return fmt.Sprintf("within %d min", int(left/time.Minute)+1)
	}
	return fmt.Sprintf("within %d h", int(left/time.Hour)+1)
}

// shortVersion returns the release of a program's version, or of an unreleased one its commit.
func shortVersion(version string) string {
	release, _, _ := strings.Cut(version, " ")
	parts := strings.Split(release, "-")
	if last := parts[len(parts)-1]; strings.HasPrefix(release, "v0.0.0-") && len(parts) == 3 {
		commit, _, _ := strings.Cut(last, "+")
		return commit
	}
	return release
}

// named returns the kind of a path's newest result and the path's label.
func (v *seriesView) named() string {
	if v.Path.Label == "" {
		return v.Kind
	}
	return v.Kind + ", " + v.Path.Label
}

func resultsText(n int) string {
	if n == 1 {
		return "1 result"
	}
	return fmt.Sprintf("%d results", n)
}

func pathsText(n int) string {
	if n == 1 {
		return "1 path"
	}
	return fmt.Sprintf("%d paths", n)
}

func its(n int) string {
	if n == 1 {
		return "its"
	}
	return "their"
}

// acceptText names the trouble that an operator may accept, "" for others.
func acceptText(kind troubleKind) string {
	switch kind {
	case bySetting:
		return "a setting limits this path, and should"
	case lower:
		return "this path is slower than before, and may be"
	case otherRoute:
		return "this path has another route, and may have"
	}
	return ""
}

// allResultsText names the results of a page without a span.
func allResultsText(n int) string {
	if n > defaultRuns {
		return fmt.Sprintf("%d results", defaultRuns)
	}
	return "all of them"
}

func connectionsText(n int) string {
	if n > 1 {
		return fmt.Sprintf("%d connections", n)
	}
	return fmt.Sprintf("%d connection", n)
}

// endOf says how a test without a result ended.
func endOf(t *record.PageTest) string {
	if t.Error != nil {
		return "failed: " + t.Error.Message
	}
	return "was stopped."
}

// runStates are the states that the page of runs selects, "" is all.
var runStates = []mesh.State{"", mesh.Done, mesh.Failed, mesh.Refused, mesh.Skipped, mesh.Lost, mesh.Granted, mesh.Due}

// runsOfState returns the address of the page of runs within a visitor's pages.
func runsOfState(state mesh.State) string {
	if state == "" {
		return "/fleet/runs"
	}
	return "/fleet/runs?state=" + url.QueryEscape(string(state))
}

func stateText(state mesh.State) string { return string(cmp.Or(state, "all")) }
