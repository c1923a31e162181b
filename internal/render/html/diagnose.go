package html

import (
	"fmt"
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/svg"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// fileNames names all captures, or of more than three the first.
func fileNames(files []string) string {
	if len(files) > 3 {
		return fmt.Sprintf("%d files from %s on", len(files), files[0])
	}
	return strings.Join(files, ", ")
}

// captureSummary counts what the captures have.
func captureSummary(r *record.Diagnose) string {
	connections := "connections"
	if len(r.Connections) == 1 {
		connections = "connection"
	}
	return fmt.Sprintf("%s: %s packets, %s TCP segments, %d %s with data.", fileNames(r.Files), text.Thousands(r.Packets),
		text.Thousands(r.Segments), len(r.Connections), connections)
}

// capturedFacts describes a connection before its directions.
func capturedFacts(c *record.CapturedConnection) string {
	facts := fmt.Sprintf("began %s, captured near: %s; handshake: %s", c.StartedAt.Format("2006-01-02 15:04:05.000 MST"),
		c.Vantage, text.CapturedConnectionHandshakeText(c))
	for _, note := range c.Notes {
		facts += "; " + note.Text
	}
	return facts
}

// rowLink links to a connection's section. A fragment has no scheme, so any identifier is safe in it.
func rowLink(c *record.CapturedConnection) templ.SafeURL {
	return templ.SafeURL("#" + text.CapturedConnectionRowID(c))
}

// anyDrawn reports whether a direction of a connection has charts.
func anyDrawn(c *record.CapturedConnection) bool {
	for i := range c.Directions {
		if svg.CapturedDirectionDrawn(&c.Directions[i]) {
			return true
		}
	}
	return false
}

// serverRequests are the requests to one server.
type serverRequests struct {
	server string
	*record.Requests
}

// requestsOf returns the requests of at most ten servers with enough of them.
func requestsOf(r *record.Diagnose) (all []serverRequests) {
	const shown = 10
	for server, requests := range r.AllRequests() {
		if requests.Leads() && len(all) < shown {
			all = append(all, serverRequests{server, requests})
		}
	}
	return all
}

// causesOf returns the causes in requests, in the order of their first appearance.
func causesOf(all []record.SlowestTurn) (causes []string) {
	for _, one := range all {
		for _, part := range one.Parts {
			if !slices.Contains(causes, part.Cause) {
				causes = append(causes, part.Cause)
			}
		}
	}
	return causes
}
