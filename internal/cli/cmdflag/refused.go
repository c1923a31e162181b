package cmdflag

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// RefusedLimiter parses LIMITER or LIMITER/SUBTYPE of --fail-on and returns it as documents have it.
func RefusedLimiter(text string) (path string, err error) {
	name, subtype, _ := strings.Cut(text, "/")
	limiter := verdict.Name(name)
	if !slices.Contains(verdict.Names(), limiter) {
		return "", exit.Usage("--fail-on", fmt.Sprintf("%q is no limiter", name), strings.Join(LimiterNames(), ", "))
	}
	_, parsed, ok := verdict.ParseLimiter(text)
	switch {
	case ok && parsed == "":
		return text, nil
	case ok:
		return name + "/" + parsed, nil
	}
	try := name + ", which has no subtypes"
	if all := verdict.Subtypes(limiter); len(all) > 0 {
		paths := make([]string, len(all))
		for i, s := range all {
			paths[i] = verdict.LimiterPath(limiter, s)
		}
		try = strings.Join(paths, ", ")
	}
	return "", exit.Usage("--fail-on", fmt.Sprintf("%q is no subtype of %s", subtype, name), try)
}

// JudgeLimiter compares a direction's verdict with the refused limiters.
func JudgeLimiter(d transfer.Direction, refused []string, v verdict.Verdict) record.Criterion {
	found := string(v.Limiter)
	if v.Subtype != "" {
		found += "/" + v.Subtype
	}
	return record.Criterion{Direction: d, Criterion: "fail-on", Refused: refused, Limiter: found,
		Passed: !slices.Contains(refused, found) && !slices.Contains(refused, string(v.Limiter))}
}
