package text

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// RFC6349CriterionVerdictText formats the verdict.
func RFC6349CriterionVerdictText(c *record.RFC6349Criterion) string {
	return strings.ReplaceAll(string(c.Verdict), "-", " ")
}

// RFC6349CriterionTitle returns a criterion's name for people.
func RFC6349CriterionTitle(c *record.RFC6349Criterion) string {
	switch c.Name {
	case "bandwidth":
		return "bandwidth at the IP layer"
	case string(rfc6349.Full):
		return "TCP, one connection"
	case string(rfc6349.Several):
		return "TCP, several connections"
	case string(rfc6349.Both):
		return "TCP, both directions at once"
	case "efficiency":
		return "TCP Efficiency"
	case "buffer-delay":
		return "Buffer Delay"
	}
	return c.Name
}

// RFC6349CriterionText formats a criterion's measured value, its requirement and the reason.
func RFC6349CriterionText(c *record.RFC6349Criterion) string {
	text := RFC6349CriterionMeasuredText(c)
	if c.Required > 0 {
		text += "; " + RFC6349CriterionAskedText(c) + " asked"
	}
	if c.Reason.Text != "" {
		text += "; " + c.Reason.Text
	}
	return text
}

// RFC6349CriterionMeasuredText formats the median with its 95 % interval.
func RFC6349CriterionMeasuredText(c *record.RFC6349Criterion) string {
	if c.Measured == nil {
		return "not measured"
	}
	text := rfc6349CriterionShow(c, *c.Measured)
	if c.CI95 != nil && c.CI95[0] != c.CI95[1] {
		text += " (" + span(rfc6349CriterionShow(c, c.CI95[0]), " to ", rfc6349CriterionShow(c, c.CI95[1])) + ")"
	}
	return text
}

// RFC6349CriterionAskedText formats the required value; "" if there is none.
func RFC6349CriterionAskedText(c *record.RFC6349Criterion) string {
	if c.Required == 0 {
		return ""
	}
	text := "at least " + rfc6349CriterionShow(c, c.Required)
	if c.Name == "buffer-delay" {
		text = "at most " + rfc6349CriterionShow(c, c.Required)
	}
	if c.Due != c.Required {
		text += fmt.Sprintf(", %.4g %% of %s", 100*c.Required/c.Due, rfc6349CriterionShow(c, c.Due))
	}
	return text
}

func rfc6349CriterionShow(c *record.RFC6349Criterion, v float64) string {
	if c.Unit == "ratio" {
		return fmt.Sprintf("%.4g %%", 100*v)
	}
	return units.Rate(v).String()
}
