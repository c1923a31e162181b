package live

import (
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
)

// Rules returns the ordered rules by which a transfer is judged from the samples of its ends.
func Rules() []rule.List {
	network := rule.List{Title: "Limiter while neither end limits: the first rule that applies"}
	for i := range networkRules {
		r := &networkRules[i]
		rule.Add(&network, r.name, r.when, r.then.String(), r.then.certain)
	}
	refined := rule.List{Title: "Congestion, refined: the first rule that applies"}
	for i := range congestionRules {
		r := &congestionRules[i]
		rule.Add(&refined, r.name, r.when, r.then.String(), r.then.certain)
	}
	closings := rule.List{Title: "The network's time between two closings of the receive window"}
	rule.Add(&closings, "between-closings", closesBetween,
		"unknown (between-closings): the time given to the network's limiter")
	high := rule.List{Title: "High confidence of a limiter, without the rule medium"}
	for _, r := range highRules {
		rule.Add(&high, string(r.limiter), r.when, "high")
	}
	lower := rule.ListSteps("Confidence, lowered: every rule that applies", lowerRules)
	return []rule.List{
		listTime("Time of each round: every rule that applies claims time that the rules before left", timeRules),
		listTime("Time that no rule claimed: the first rule that applies", remainderRules), network, refined, closings,
		high, lower,
		listDecisions("An upload seen by its receiver and by the sending program: the first rule that applies",
			arrivalRules),
		listDecisions("A transfer seen by its receiver and by probes: the first rule that applies", probeRules),
		listDecisions("A UDP transfer: the first rule that applies", datagramRules)}
}

func listTime(title string, rules []timeRule) rule.List {
	l := rule.List{Title: title}
	for i := range rules {
		r := &rules[i]
		outcome := string(r.limiter)
		if r.limiter == "" {
			outcome = "the limiter that the network rules name"
		}
		if r.code != "" {
			outcome += " (" + string(r.code) + ")"
		}
		rule.Add(&l, r.name, r.when, outcome+": "+r.claims.name)
		l.AddInput(rule.Input{Name: r.claims.name, Unit: "time", Means: r.claims.means, Uses: r.claims.uses})
	}
	return l
}
