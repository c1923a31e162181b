// Package mesh decides which hosts of a fleet measure the paths between them, how often, and which run may start now.
// It is arithmetic: no clock, no I/O.
//
// A mesh file goes through these steps:
//
//  1. Parse reads mesh.toml and checks it.
//  2. Mesh.Pairs selects the pairs of agents of each task and the hosts and links that a run of a pair needs.
//  3. Mesh.Plan stretches the interval of each pair until no host or link is too busy and no byte budget is exceeded.
//  4. Book starts due runs: at most one run at a time on each host and link, within the byte budgets.
package mesh

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/config"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Mesh is a parsed mesh file. Its zero value measures nothing.
type Mesh struct {
	Sites  map[string]Site `toml:"site"`
	Links  map[string]Link `toml:"link"`
	Tasks  map[string]Task `toml:"task"`
	Limits Limits          `toml:"limits"`
	// Keep is how long results stay in the database; 0: for ever.
	Keep   Interval         `toml:"keep"`
	Alerts map[string]Alert `toml:"alert"`
}

// Site is a group of agents at one place.
type Site struct {
	Agents []string          `toml:"agents"` // name patterns, such as "ber-*"
	Labels map[string]string `toml:"labels"` // an agent with all these labels belongs to the site
	Uplink string            `toml:"uplink"` // the link that every path out of the site uses; "" is none
}

// Link is a link that runs share. At most one run uses a link at a time.
type Link struct {
	DayBytes Bytes    `toml:"day-bytes"` // all runs over the link in any 24 hours, both ways; 0 is no limit
	Between  []string `toml:"between"`   // sites: paths between two different ones of them use the link
}

// Task is a throughput test that pairs of agents repeat.
type Task struct {
	Between    []string `toml:"between"`    // members that test each other
	From       []string `toml:"from"`       // members that test each member of To
	To         []string `toml:"to"`         // see From
	Neighbours int      `toml:"neighbours"` // each member of Between tests this many others; 0 is all
	PerSite    int      `toml:"per-site"`   // agents of each site that take part; 0 is all
	Every      Interval `toml:"every"`      // mean time between runs of a pair; the plan may stretch it
	Time       Interval `toml:"time"`       // of each direction
	Most       Bytes    `toml:"most"`       // payload of each direction, which ends a fast test earlier; 0 is no limit
	Streams    int      `toml:"streams"`
	Congestion string   `toml:"congestion"`
	QuietHours string   `toml:"quiet-hours"` // such as "08:00-18:00": no run starts then
	Zone       string   `toml:"zone"`        // of QuietHours; "" is the hub's
}

// Limits bound each agent. The agent's own file may set lower limits.
type Limits struct {
	DayBytes Bytes   `toml:"day-bytes"` // of all runs of an agent in any 24 hours, both ways; 0 is no limit
	MostFull float64 `toml:"most-full"` // greatest share of the time that runs occupy a host or link; 0 is 0.6
}

// Alert is a receiver of incidents: a webhook or an Alertmanager. It has no program: an admin can change the mesh from
// the page, and only the command line starts programs on the hub's host.
type Alert struct {
	Webhook string `toml:"webhook"`
	// Alertmanager is the URL below which its API is.
	Alertmanager string   `toml:"alertmanager"`
	On           []string `toml:"on"`    // of Changes; none is all
	Sites        []string `toml:"sites"` // incidents that concern one of these sites; none is all
}

// Bytes is a size, such as "200MB" in the file.
type Bytes int64

// UnmarshalText parses a size with its unit.
func (b *Bytes) UnmarshalText(text []byte) error {
	size, err := units.ParseSize(string(text))
	*b = Bytes(size)
	return err
}

// Interval is a time, such as "6h" in the file.
type Interval time.Duration

// UnmarshalText parses a time with its unit: d is a day of 24 hours.
func (i *Interval) UnmarshalText(text []byte) error {
	if number, ok := strings.CutSuffix(string(text), "d"); ok {
		days, err := strconv.ParseUint(number, 10, 15)
		if err != nil {
			return fmt.Errorf("time %q: not a number of days, as in 7d", text)
		}
		*i = Interval(time.Duration(days) * day)
		return nil
	}
	d, err := units.ParseTime(string(text))
	*i = Interval(d)
	return err
}

// MaxFile is the largest size of a mesh file in bytes.
const MaxFile = 1 << 20

// Defaults and limits of tasks.
const (
	defaultTime     = 5 * time.Second
	maxTime         = 10 * time.Minute
	minEvery        = time.Minute
	maxEvery        = 366 * day
	minKeep         = day
	maxStreams      = 128
	defaultMostFull = 0.6
)

// keys are the names of all settings, for suggestions.
var keys = []string{"site", "link", "task", "limits", "keep", "alert",
	"agents", "labels", "uplink", "day-bytes", "between",
	"from", "to", "neighbours", "per-site", "every", "time", "most", "streams", "congestion", "quiet-hours",
	"zone", "most-full", "webhook", "alertmanager", "on", "sites"}

// Parse parses a mesh file and fills in the defaults. The error lists every fault that it finds, one on each line.
func Parse(text []byte) (*Mesh, error) {
	if len(text) > MaxFile {
		return nil, fmt.Errorf("the file has %d bytes; at most %d are read", len(text), MaxFile)
	}
	m := &Mesh{}
	if err := config.Decode(bytes.NewReader(text), m, keys); err != nil {
		return nil, err
	}
	return m, m.check()
}

// name matches the names of sites, links, tasks and alerts.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`)

// check returns all faults of a mesh and fills in the defaults.
func (m *Mesh) check() error {
	var faults []error
	fault := func(where, format string, args ...any) {
		faults = append(faults, fmt.Errorf("%s: "+format, append([]any{where}, args...)...))
	}
	for _, table := range []struct {
		kind  string
		names []string
	}{{"site", sorted(m.Sites)}, {"link", sorted(m.Links)}, {"task", sorted(m.Tasks)}, {"alert", sorted(m.Alerts)}} {
		for _, n := range table.names {
			if !name.MatchString(n) {
				fault(table.kind+"."+n, "a name has letters, digits, '.', '_' and '-', at most 63 of them")
			}
		}
	}
	if m.Keep != 0 && time.Duration(m.Keep) < minKeep {
		fault("keep", "at least 24h: a path's usual range comes from earlier results")
	}
	for _, n := range sorted(m.Sites) {
		m.checkSite(n, fault)
	}
	for _, n := range sorted(m.Links) {
		for _, site := range m.Links[n].Between {
			if _, known := m.Sites[site]; !known {
				fault("link."+n+".between", "there is no site %q", site)
			}
		}
		if k := len(m.Links[n].Between); k == 1 {
			fault("link."+n+".between", "a link is between at least two sites")
		}
	}
	for _, n := range sorted(m.Tasks) {
		task := m.Tasks[n].withDefaults()
		m.Tasks[n] = task
		m.checkMembers(n, task, fault)
		task.check(n, fault)
	}
	if m.Limits.MostFull == 0 {
		m.Limits.MostFull = defaultMostFull
	}
	if !(m.Limits.MostFull > 0 && m.Limits.MostFull <= 0.9) {
		fault("limits.most-full", "%v is not more than 0 and at most 0.9", m.Limits.MostFull)
	}
	for _, n := range sorted(m.Alerts) {
		m.checkAlert(n, fault)
	}
	return errors.Join(faults...)
}

func (m *Mesh) checkSite(n string, fault func(where, format string, args ...any)) {
	site := m.Sites[n]
	if len(site.Agents) == 0 && len(site.Labels) == 0 {
		fault("site."+n, "needs agents or labels")
	}
	for _, pattern := range site.Agents {
		if _, err := path.Match(pattern, ""); err != nil {
			fault("site."+n+".agents", "%q is not a pattern such as ber-*", pattern)
		}
	}
	if _, known := m.Links[site.Uplink]; site.Uplink != "" && !known {
		fault("site."+n+".uplink", "there is no [link.%s]", site.Uplink)
	}
}

func (m *Mesh) checkMembers(n string, task Task, fault func(where, format string, args ...any)) {
	for _, list := range task.lists() {
		for _, member := range list.members {
			pattern, isSite := strings.CutPrefix(member, "site:")
			if _, err := path.Match(pattern, ""); err != nil {
				fault("task."+n+"."+list.key, "%q is not a pattern such as ber-*", member)
				continue
			}
			matches := func(site string) bool { return matched(pattern, site) }
			if isSite && !slices.ContainsFunc(sorted(m.Sites), matches) && pattern != "*" {
				fault("task."+n+"."+list.key, "there is no site %q", pattern)
			}
		}
	}
}

func (m *Mesh) checkAlert(n string, fault func(where, format string, args ...any)) {
	alert := m.Alerts[n]
	key := "webhook"
	if alert.Alertmanager != "" {
		key = "alertmanager"
	}
	if err := CheckWebhook(cmp.Or(alert.Alertmanager, alert.Webhook)); err != nil {
		fault("alert."+n+"."+key, err.Error())
	}
	if alert.Alertmanager != "" && alert.Webhook != "" {
		fault("alert."+n, "has webhook and alertmanager: make an alert of each")
	}
	checkOn(n, alert.On, fault)
	for _, site := range alert.Sites {
		if _, known := m.Sites[site]; !known {
			fault("alert."+n+".sites", "there is no site %q", site)
		}
	}
}

func (t Task) withDefaults() Task {
	if t.Time == 0 {
		t.Time = Interval(defaultTime)
	}
	t.Streams = max(t.Streams, 1)
	return t
}

func (t Task) check(n string, fault func(where, format string, args ...any)) {
	where := "task." + n
	switch {
	case len(t.Between) == 0 && len(t.From) == 0 && len(t.To) == 0:
		fault(where, "needs between = [...], or from = [...] and to = [...]")
	case len(t.Between) > 0 && len(t.From)+len(t.To) > 0:
		fault(where, "has between, and from or to: give one of both")
	case len(t.Between) == 0 && (len(t.From) == 0 || len(t.To) == 0):
		fault(where, "from and to belong together")
	case t.Neighbours != 0 && len(t.Between) == 0:
		fault(where+".neighbours", "belongs to between")
	}
	for _, limit := range []struct {
		key      string
		value    int64
		min, max int64
	}{
		{"every", int64(t.Every), int64(minEvery), int64(maxEvery)},
		{"time", int64(t.Time), int64(time.Second / 10), int64(maxTime)},
		{"neighbours", int64(t.Neighbours), 0, 1000},
		{"per-site", int64(t.PerSite), 0, 1000},
		{"streams", int64(t.Streams), 1, maxStreams},
	} {
		if limit.value >= limit.min && limit.value <= limit.max {
			continue
		}
		if limit.key == "every" || limit.key == "time" {
			fault(where+"."+limit.key, "%s is not between %s and %s", units.Time(time.Duration(limit.value)),
				units.Time(time.Duration(limit.min)), units.Time(time.Duration(limit.max)))
			continue
		}
		fault(where+"."+limit.key, "%d is not between %d and %d", limit.value, limit.min, limit.max)
	}
	if _, err := t.Quiet(time.UTC); err != nil {
		fault(where+".quiet-hours", "%w", err)
	}
}

// Quiet returns the hours in which no run of the task starts. local is the zone of a task without one.
func (t Task) Quiet(local *time.Location) (recheck.Hours, error) {
	if t.Zone != "" {
		zone, err := time.LoadLocation(t.Zone)
		if err != nil {
			return recheck.Hours{}, fmt.Errorf("zone %q: %w", t.Zone, err)
		}
		local = zone
	}
	return recheck.ParseHours(t.QuietHours, local)
}

func sorted[V any](table map[string]V) []string { return slices.Sorted(maps.Keys(table)) }

// CheckWebhook returns why no events are sent to a URL, nil if they are. Only this host gets them unencrypted.
func CheckWebhook(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("is not a URL such as https://alerts.example.net/hook")
	}
	a, err := netip.ParseAddr(u.Hostname())
	if u.Scheme == "http" && !(err == nil && a.IsLoopback()) && !strings.EqualFold(u.Hostname(), "localhost") {
		return errors.New("reports about your paths would go to " + u.Hostname() + " unencrypted: https://, or http:// to " +
			"127.0.0.1")
	}
	return nil
}
