package text

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// headline is the first line about one direction in every command: the rate, the limiter and the action.
// "6.9 Mbit/s up of about 48, limited by congestion (0.4 % loss, no queue). Try bbr."
type headline struct {
	subject string // with the rate: "6.9 Mbit/s up"
	bps     float64
	// pathBps is the rate that the path carries in bit/s; 0: by the verdict and its fixes, if they have it.
	pathBps float64
	atLeast bool // the path may carry more than pathBps
	verdict verdict.Verdict
	fixes   []advice.Fix
	limited string // in place of the verdict's clause
	do      string // in place of the first of fixes
}

// writeHeadline prints a headline, wrapped, on a terminal in colour.
func writeHeadline(w io.Writer, h headline) {
	answer, action := h.parts()
	writeParts(w, part{render.Answer, answer}, part{render.Action, action})
}

// writeDo prints a remedy after "do:".
func writeDo(w io.Writer, remedy string) {
	render.Paint(w, render.Action, hanging(w, "  do: ", remedy))
	fmt.Fprintln(w)
}

// part is a text with a meaning.
type part struct {
	meaning render.Meaning
	text    string
}

// writeParts prints parts in one paragraph, wrapped.
func writeParts(w io.Writer, parts ...part) {
	column := 0
	for _, p := range parts {
		line := ""
		for _, word := range wrapWords(p.text) {
			n := utf8.RuneCountInString(word)
			switch {
			case column == 0:
			case column+1+n > render.Columns(w):
				render.Paint(w, p.meaning, line)
				line = ""
				column = 0
				fmt.Fprintln(w)
			default:
				line += " "
				column++
			}
			line += word
			column += n
		}
		render.Paint(w, p.meaning, line)
	}
	fmt.Fprintln(w)
}

// spaceAfter prints an empty line after headlines.
func spaceAfter(w io.Writer, headlines int) {
	if headlines > 0 {
		fmt.Fprintln(w)
	}
}

// rateSubject formats "6.9 Mbit/s up".
func rateSubject(bps *float64, of string) string {
	if bps == nil {
		return "no rate measured " + of
	}
	return units.Rate(*bps).String() + " " + of
}

func (h headline) String() string {
	answer, action := h.parts()
	return strings.TrimSpace(answer + " " + action)
}

// parts returns the rate with its limiter, and the action; both are sentences.
func (h *headline) parts() (answer, action string) {
	text := h.subject
	rate := units.Rate(h.bps).String()
	if path, atLeast := h.path(); path > 0 && path >= minPathFactor*h.bps {
		of := " of about "
		if atLeast {
			of = " of at least "
		}
		text += of + strings.TrimSuffix(units.Rate(path).String(), unitOf(rate))
	}
	if limited := cmp.Or(h.limited, limitedClause(&h.verdict)); limited != "" {
		text += ", " + limited
	}
	if do := cmp.Or(h.do, briefDo(h.fixes, &h.verdict)); do != "" {
		action = sentenceCase(do) + "."
	}
	return text + ".", action
}

// minPathFactor is the factor from which a path's rate is worth mentioning: a limiter costs a tenth or more.
const minPathFactor = 1.1

// path returns the rate that the path carries, as measured, else by the remedy's effect or the evidence; 0: not known.
// The path may carry more than a transfer that lost segments got between its losses.
func (h *headline) path() (bps float64, atLeast bool) {
	if h.pathBps > 0 {
		return h.pathBps, h.atLeast
	}
	if len(h.fixes) > 0 && h.fixes[0].Expected != nil && h.fixes[0].Expected.HighBps > 0 {
		return h.fixes[0].Expected.HighBps, false
	}
	if e := mainEvidence(&h.verdict); e != nil && (e.Code == verdict.LossBelowBest || e.Code == verdict.LossAllTheTime) {
		return e.Values["best_bps"], true
	}
	return 0, false
}

// unitOf returns a quantity's unit with the space before it.
func unitOf(quantity string) string {
	_, unit, _ := strings.Cut(quantity, " ")
	return " " + unit
}

// sentenceCase returns text with a capital letter at its start.
func sentenceCase(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// hedges precede a verdict of less than high confidence.
var hedges = map[verdict.Confidence]string{verdict.Medium: "probably ", verdict.Low: "perhaps "}

// limitedClause formats "probably limited by congestion (0.4 % loss, no queue)"; "" without a verdict.
func limitedClause(v *verdict.Verdict) string {
	hedge := hedges[v.Confidence]
	switch {
	case v.Limiter == "":
		return ""
	case v.Limiter == verdict.Unknown && len(v.Candidates) > 0:
		return "limiter unknown: " + candidatesText(v.Candidates)
	case v.Limiter == verdict.Unknown:
		return "limiter unknown"
	case v.Limiter == verdict.Mixed:
		return hedge + "limited by several things in turn" + inParentheses(mixedShares(v))
	case v.Limiter == verdict.Sender:
		return hedge + "limited by the sending host" + inParentheses([]string{verdict.Join(v.Candidates, " or ")})
	case len(v.Candidates) > 1:
		return hedge + "limited by " + verdict.Join(v.Candidates, " or ")
	}
	details := brieflyWhy(v)
	if v.Subtype != "" {
		details = append([]string{verdict.Label(v.Subtype)}, details...)
	}
	return hedge + "limited by " + string(v.Limiter) + inParentheses(details)
}

// mixedShares lists the candidates of a mixed verdict with their shares of time.
func mixedShares(v *verdict.Verdict) (parts []string) {
	for _, name := range v.Candidates {
		text := string(name)
		if share := v.Shares[name]; share > 0 {
			text += " " + percent(share)
		}
		parts = append(parts, text)
	}
	return parts
}

func inParentheses(parts []string) string {
	if text := strings.Join(parts, ", "); text != "" {
		return " (" + text + ")"
	}
	return ""
}

// mainEvidence returns the first observation about the verdict's limiter, or nil.
func mainEvidence(v *verdict.Verdict) *verdict.Evidence {
	for i := range v.Evidence {
		if v.Evidence[i].Limiter == v.Limiter {
			return &v.Evidence[i]
		}
	}
	return nil
}

// brieflyWhy returns the figures that show a limiter best, in a few words; else its share of the time.
func brieflyWhy(v *verdict.Verdict) (parts []string) {
	e := mainEvidence(v)
	if e == nil {
		return sharePart(v)
	}
	f := figures(e.Values)
	base := f["rtt_base_s"]
	loaded := f["rtt_s"]
	switch v.Limiter {
	case verdict.Congestion:
		parts = briefLoss(f)
		switch e.Code {
		case verdict.LossWithoutQueue, verdict.PolicedRate, verdict.PolicerBucket:
			parts = append(parts, "no queue")
		}
	case verdict.Bottleneck, verdict.AckPath:
		if base > 0 && loaded > base {
			parts = append(parts, fmt.Sprintf("%s of queue", SecondsText(loaded-base)))
		}
	case verdict.ReceiverWindow, verdict.SendBuffer:
		size := f["window_bytes"]
		if v.Limiter == verdict.SendBuffer && f.has("outstanding_bytes") {
			size = f["outstanding_bytes"]
		}
		if size > 0 {
			text := units.Size(size).String()
			if loaded > 0 {
				text += " at " + SecondsText(loaded)
			}
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return sharePart(v)
	}
	return parts
}

// briefLoss formats the share of the data that was lost, by the sender's retransmissions.
func briefLoss(f figures) []string {
	ratio := f["retransmitted_ratio"]
	if all := f["segments"]; ratio == 0 && all > 0 {
		ratio = f["retransmitted_segments"] / all
	}
	if ratio <= 0 {
		return nil
	}
	if f.has("needless_ratio") {
		return []string{fmt.Sprintf("%.2g %% retransmitted, mostly needlessly", 100*ratio)}
	}
	return []string{fmt.Sprintf("%.2g %% loss", 100*ratio)}
}

func sharePart(v *verdict.Verdict) []string {
	if share := v.Shares[v.Limiter]; share > 0 {
		return []string{percent(share) + " of the time"}
	}
	return nil
}
