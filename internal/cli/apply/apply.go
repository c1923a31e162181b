// Package apply is the command apply: it makes a plan's settings on this host.
package apply

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/input"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

type flags struct{ yes, dryRun, persist, likely bool }

// New returns the command apply.
func New() *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "apply PLAN",
		Short: "set what plan or tune computed on this host; undo restores it",
		Long: `apply changes Linux and Windows hosts. For macOS and FreeBSD use fullpipe
plan: it writes a file for the system's own tools (--format launchdaemon, --format sysctl);
with --undo it writes the file that restores the old values.

apply reads the JSON of plan or tune (- is standard input), shows the changes and asks. It
saves the old values on the disk before it changes anything. It reads every new value back;
if the system refused or reduced one, apply restores all old values. The settings end with
the next reboot, unless --persist is given. Settings that a tune found likely to help, but did not
prove, are left out, unless --accept-likely is given.`,
		Example: `  fullpipe plan --rate 1gbit --rtt 100ms --json > plan.json
  fullpipe apply --dry-run plan.json
  fullpipe apply plan.json
  fullpipe undo`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runApply(cmd, f, args[0]) },
	}
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what would change, but change nothing")
	cmd.Flags().BoolVar(&f.persist, "persist", false, "keep the settings after a reboot ("+host.PersistFile+")")
	cmd.Flags().BoolVar(&f.likely, "accept-likely", false, "also apply settings that tune found likely to help, but "+
		"did not prove")
	return cmd
}

// planFile is the part of a plan's or a tune's JSON that apply reads.
type planFile struct {
	Schema      string         `json:"schema"`
	Target      string         `json:"target"`
	MemoryBytes int64          `json:"memory_bytes"`
	Settings    []plan.Setting `json:"settings"`
	Route       struct {
		Prefix string `json:"prefix"`
	} `json:"route"`
	Far struct {
		Address string `json:"address"`
	} `json:"far"`
	Directions []struct {
		Decision struct {
			Strength search.Strength `json:"strength"`
		} `json:"decision"`
		Settings []struct {
			Host string           `json:"host"`
			By   record.SettingBy `json:"by"`
			plan.Setting
		} `json:"settings"`
	} `json:"directions"`
}

func readPlan(cmd *cobra.Command, name string, likely bool) (*planFile, error) {
	text, err := input.Read(cmd, name, 16<<20)
	if err != nil {
		return nil, input.Missing(err, "fullpipe plan ... --json > "+name)
	}
	return parsePlan(text, name, likely)
}

// parsePlan parses a plan. likely keeps the settings of a tune's direction whose gain is not proven.
func parsePlan(text []byte, name string, likely bool) (*planFile, error) {
	const remedy = "a file that plan --json or tune --json wrote"
	p := &planFile{}
	if err := json.Unmarshal(text, p); err != nil {
		return nil, exit.Usage(name, exit.Plain(err), remedy)
	}
	if p.Schema != "fullpipe/plan/v1" && p.Schema != "fullpipe/tune/v1" {
		return nil, exit.Usage(name, fmt.Sprintf("its schema is %q", p.Schema), remedy)
	}
	if target, err := plan.ParseTarget(p.Target); p.Target != "" &&
		(err != nil || target.Family != host.Target("").Family) {
		return nil, exit.Usage(name, fmt.Sprintf("it is for %s, this host is %s", p.Target, host.Target("").Name),
			"a plan without --target")
	}
	p.routed()
	unproven := false
	for _, d := range p.Directions {
		if d.Decision.Strength == search.Likely && !likely {
			unproven = unproven || len(d.Settings) > 0
			continue
		}
		for _, s := range d.Settings {
			ofRoute := strings.HasPrefix(s.Where, "of the route")
			switch {
			case s.Host == "far", strings.HasPrefix(s.Where, "in the program"),
				s.By == record.ByProgram, s.By == record.ByStreams,
				ofRoute && p.Route.Prefix == "",
				p.Route.Prefix != "" && s.Name == "net.ipv4.tcp_congestion_control": // the route's is narrower
				continue
			case ofRoute:
				s.Where = ""
			}
			if !slices.ContainsFunc(p.Settings, func(o plan.Setting) bool { return o.Name == s.Name }) {
				p.Settings = append(p.Settings, s.Setting)
			}
		}
	}
	if unproven && len(p.Settings) == 0 {
		return nil, exit.Usage(name, "its gain is likely, but not proven", "tune with the larger --budget that it names, or "+
			"fullpipe apply --accept-likely "+name)
	}
	if p.Schema == "fullpipe/tune/v1" && len(p.Settings) == 0 {
		return nil, exit.Usage(name, "none of its settings is this host's: they belong in the program, or on the far host",
			"fullpipe show "+name)
	}
	return p, nil
}

// routed narrows tune's settings to the route to its far end, if this host has one other than the default route.
func (p *planFile) routed() {
	address, err := netip.ParseAddr(p.Far.Address)
	if p.Schema != "fullpipe/tune/v1" || err != nil {
		return
	}
	prefix, err := host.RouteTo(address)
	if err == nil && prefix != "default" && prefix != "::/0" {
		p.Route.Prefix = prefix
	}
}

func runApply(cmd *cobra.Command, f *flags, name string) error {
	p, err := readPlan(cmd, name, f.likely)
	if err != nil {
		return err
	}
	changes, err := host.Changes(p.Settings, p.Route.Prefix)
	if err == nil && f.persist && len(changes) > 0 {
		changes, err = host.Persist(changes)
	}
	if err != nil {
		return err
	}
	dids, err := host.Preview(host.Config{}, changes)
	if err == nil {
		err = checkMemory(p.MemoryBytes, dids)
	}
	if err != nil {
		return err
	}
	doc := report.Apply(present.Header(cmd), dids, host.WholeHost(), f.persist || host.Lasting(changes))
	doc.DryRun = f.dryRun
	needed := slices.ContainsFunc(dids, func(d host.Did) bool { return d.Outcome == host.Planned })
	if needed && !f.dryRun {
		agreed := func([]host.Did) error { return nil }
		if !f.yes {
			if err := text.Write(cmd.ErrOrStderr(), doc); err != nil {
				return fmt.Errorf("the changes cannot be shown: %w", err)
			}
			if err := console.Confirm(cmd, "make these changes?"); err != nil {
				return err
			}
			shown := dids
			agreed = func(pending []host.Did) error { return host.Agreed(shown, pending) }
		}
		check := func(pending []host.Did) error { return cmp.Or(agreed(pending), checkMemory(p.MemoryBytes, pending)) }
		dids, err = host.Apply(cmd.Context(), host.Config{Check: check}, changes)
		if err != nil && len(dids) == 0 { // nothing was changed
			return err
		}
		doc = report.Apply(present.Header(cmd), dids, host.WholeHost(), f.persist || host.Lasting(changes))
		if err != nil {
			doc.Error = &record.Failure{Code: exit.Code(err), Message: exit.Message(err)}
		} else if f.persist {
			doc.Warnings = text.OverriddenAtBoot(host.Overridden(changes))
		}
	}
	if console.WantsJSON(cmd) {
		err = errors.Join(err, present.JSON(cmd.OutOrStdout(), doc))
		if doc.Error != nil {
			return exit.Status(exit.Failed)
		}
		return err
	}
	return errors.Join(err, text.Write(cmd.OutOrStdout(), doc))
}

// checkMemory compares the buffers of all the plan's connections, at least of one, with this host's memory. It checks
// nothing on systems without a snapshot.
func checkMemory(planned int64, pending []host.Did) error {
	bytes := max(planned, host.BufferBytes(pending))
	if bytes <= 0 {
		return nil
	}
	s, err := host.Snapshot()
	if errors.Is(err, socket.ErrNotSupported) {
		return nil
	}
	if err != nil {
		return err
	}
	limit, parameter := s.MaxBuffers()
	if limit <= 0 || bytes <= limit {
		return nil
	}
	return &memoryError{bytes, limit, parameter}
}

// memoryError reports buffers that are too large for the host's memory.
type memoryError struct {
	bytes, limit int64
	parameter    string // bounds them; "": the memory
}

func (e *memoryError) Code() string { return "memory" }

func (e *memoryError) Error() string {
	share := map[string]string{"net.ipv4.tcp_mem": "half of tcp_mem's pressure mark",
		"memory.max": "half of the cgroup's memory limit", "": "1/32 of the memory"}[e.parameter]
	return fmt.Sprintf("not applied: full buffers would take %s, more than %s, %s", units.Size(e.bytes), share,
		units.Size(e.limit))
}

func (e *memoryError) Try() string {
	return "a plan with --memory for this host's, or fewer --connections"
}
