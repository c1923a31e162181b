package mesh

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/didyoumean"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Check plans a mesh file that a user gives. Unlike Plan it returns an error where a task can never run as written: a
// member that selects no host, or a run that is too large for a budget.
func (m *Mesh) Check(agents []Agent) (*Plan, error) {
	plan, err := m.Plan(agents)
	if err != nil {
		return nil, err
	}
	return plan, errors.Join(m.checkHosts(agents), m.checkRuns(agents, plan))
}

// checkHosts returns an error for each member of a task that selects no host. It returns nil before the first host.
func (m *Mesh) checkHosts(agents []Agent) error {
	if len(agents) == 0 {
		return nil
	}
	names := make([]string, len(agents))
	all := make([]placed, len(agents))
	for i, a := range agents {
		names[i] = a.Name
		all[i] = placed{a, m.SiteOf(a)}
	}
	var faults []error
	for _, n := range sorted(m.Tasks) {
		task := m.Tasks[n]
		for _, list := range task.lists() {
			for _, member := range list.members {
				if slices.ContainsFunc(all, func(a placed) bool { return a.fits(member) }) {
					continue
				}
				hint := ""
				if near := didyoumean.Nearest(member, names); near != "" {
					hint = " (" + near + "?)"
				}
				faults = append(faults, fmt.Errorf("task.%s.%s: %q matches no host of the fleet%s", n, list.key, member, hint))
			}
		}
	}
	return errors.Join(faults...)
}

// checkRuns returns an error where a run of a task does not fit into a fifth of a byte budget of the mesh file, or into
// an agent's day-time. Runs are made smaller for an agent's own bytes.
func (m *Mesh) checkRuns(agents []Agent, plan *Plan) error {
	for _, p := range plan.Pairs {
		task := m.Tasks[p.Task]
		for _, r := range p.Needs {
			limit := int64(m.Limits.DayBytes)
			if name, isLink := r.Link(); isLink {
				limit = int64(m.Links[name].DayBytes)
			}
			if limit > 0 && float64(task.RunBytes()) > burst*float64(limit) {
				return fmt.Errorf("task.%s: a run moves up to %s, more than a fifth of the %s a day of %s: "+
					"set most, or raise day-bytes", p.Task, units.Size(task.RunBytes()), units.Size(limit), Describe(r, agents))
			}
			if limit := plan.Budgets[r].Time; limit > 0 && task.TransferTime() > limit {
				return fmt.Errorf("task.%s: a run takes up to %s, more than the %s a day of %s: set time", p.Task,
					units.Time(task.TransferTime()), units.Time(limit), Describe(r, agents))
			}
		}
	}
	return nil
}

// memberList is a list of members of a task, with its key in the file.
type memberList struct {
	key     string
	members []string
}

func (t Task) lists() []memberList {
	return []memberList{{"between", t.Between}, {"from", t.From}, {"to", t.To}}
}

// Changes are the values of an alert's on: the symptoms of incidents. Older files have more words: dip is goodput or
// rtt, the others are of single changes, which are no incidents.
var Changes = []string{recheck.Goodput, recheck.RTT, recheck.Limiter, "unreachable", "away"}

var olderChanges = []string{recheck.MTU, recheck.Handshake, recheck.FarKernel, string(changepoint.Dipped),
	string(recheck.Rise), string(changepoint.Changed), string(changepoint.Back)}

// checkOn reports values of an alert's on that no change has.
func checkOn(n string, on []string, fault func(where, format string, args ...any)) {
	for _, value := range on {
		if slices.Contains(Changes, value) || slices.Contains(olderChanges, value) {
			continue
		}
		hint := ": one of " + strings.Join(Changes, ", ")
		if near := didyoumean.Nearest(value, slices.Concat(Changes, olderChanges)); near != "" {
			hint = " (" + near + "?)"
		}
		fault("alert."+n+".on", "there is no change %q%s", value, hint)
	}
}
