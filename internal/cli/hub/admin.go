package hub

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/hub"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

func newToken(o *options) *cobra.Command {
	var uses int
	var lasts time.Duration
	var from, labels []string
	cmd := &cobra.Command{
		Use:     "token",
		Short:   "print a token that lets hosts join",
		Example: "  fullpipe-hub token\n  fullpipe-hub token --uses 200 --for 24h --from 10.0.0.0/8 --labels site=berlin",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			now := time.Now()
			e := store.Enrolment{Uses: uses, Until: now.Add(lasts), Labels: map[string]string{}, By: "command line"}
			if uses < 1 || lasts <= 0 {
				return exit.Usage("--uses", "a token is for one host or more, for some time", "--uses 1 --for 1h")
			}
			for _, text := range from {
				p, err := netip.ParsePrefix(text)
				if err != nil {
					return exit.Usage("--from", fmt.Sprintf("%q is not a network", text), "--from 10.0.0.0/8")
				}
				e.Networks = append(e.Networks, p)
			}
			for _, text := range labels {
				name, value, ok := strings.Cut(text, "=")
				if !ok {
					return exit.Usage("--labels", fmt.Sprintf("%q is not NAME=VALUE", text), "--labels site=berlin")
				}
				e.Labels[name] = value
			}
			return o.use(cmd, func(ctx context.Context, dir string, f *store.Fleet) error {
				var at hubFile
				text, err := os.ReadFile(filepath.Join(dir, hubFileName))
				if err == nil {
					err = json.Unmarshal(text, &at)
				}
				if err != nil {
					return fmt.Errorf("the hub's address is not known yet: start fullpipe-hub serve first: %w", err)
				}
				secret, err := hub.NewToken(ctx, f, e, now)
				if err == nil {
					err = f.Audit(ctx, audit("token", fmt.Sprintf("%d hosts, %v", uses, lasts)))
				}
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), bus.Token{URLs: at.URLs, Secret: secret, Pin: at.Pin})
				return err
			})
		},
	}
	cmd.Flags().IntVar(&uses, "uses", 1, "the number of hosts that may join with it")
	cmd.Flags().DurationVar(&lasts, "for", time.Hour, "how long it is valid")
	cmd.Flags().StringSliceVar(&from, "from", nil, "networks of the hosts; default: all")
	cmd.Flags().StringSliceVar(&labels, "labels", nil, "labels of the hosts, as in site=berlin")
	return cmd
}

func newMesh(o *options) *cobra.Command {
	cmd := &cobra.Command{Use: "mesh", Short: "check, apply or show the mesh file: which hosts test each other"}
	read := func(cmd *cobra.Command, name string) (*mesh.Mesh, string, error) {
		text, err := readFile(cmd, name)
		if err != nil {
			return nil, "", err
		}
		m, err := mesh.Parse(text)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", name, err)
		}
		return m, string(text), nil
	}
	check := &cobra.Command{Use: "check FILE", Short: "print the pairs, intervals and loads that a mesh file gives",
		Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
			m, _, err := read(cmd, args[0])
			if err != nil {
				return err
			}
			return o.use(cmd, func(ctx context.Context, _ string, f *store.Fleet) error { return showPlan(ctx, cmd, f, m) })
		}}
	apply := &cobra.Command{Use: "apply FILE", Short: "use a mesh file from now on", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, text, err := read(cmd, args[0])
			if err != nil {
				return err
			}
			return o.use(cmd, func(ctx context.Context, _ string, f *store.Fleet) error {
				members, err := (&web.Fleet{Store: f}).Members(ctx)
				if err != nil {
					return err
				}
				if _, err := m.Check(members); err != nil {
					return err
				}
				version, err := f.SetMesh(ctx, text, userName(), time.Now())
				if err == nil {
					err = f.Audit(ctx, audit("mesh", fmt.Sprintf("version %d", version)))
				}
				if err == nil {
					_, err = fmt.Fprintf(cmd.OutOrStdout(), "mesh version %d is used\n", version)
				}
				return err
			})
		}}
	show := &cobra.Command{Use: "show", Short: "print the mesh file in use", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.use(cmd, func(ctx context.Context, _ string, f *store.Fleet) error {
				text, version, err := f.Mesh(ctx)
				if err != nil {
					return err
				}
				if version == 0 {
					text = "# no mesh file: all agents test each other once a day; above 30, five others each\n"
				}
				_, err = io.WriteString(cmd.OutOrStdout(), text)
				return err
			})
		}}
	cmd.AddCommand(check, apply, show)
	return cmd
}

// readFile reads a mesh file, "-" is standard input.
func readFile(cmd *cobra.Command, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(cmd.InOrStdin(), mesh.MaxFile+1))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, mesh.MaxFile+1))
}

// showPlan prints the tasks with their intervals, and the fullest hosts and links.
func showPlan(ctx context.Context, cmd *cobra.Command, f *store.Fleet, m *mesh.Mesh) error {
	members, err := (&web.Fleet{Store: f}).Members(ctx)
	if err != nil {
		return err
	}
	plan, err := m.Check(members)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TASK\tPAIRS\tASKED\tLONGEST\tBOUND BY")
	for _, name := range slices.Sorted(maps.Keys(m.Tasks)) {
		task := m.Tasks[name]
		count := 0
		longest := mesh.Planned{Every: time.Duration(task.Every)}
		for _, p := range plan.Pairs {
			if p.Task == name {
				count++
				if p.Every > longest.Every {
					longest = p
				}
			}
		}
		bound := "-"
		if longest.Bound != "" {
			bound = mesh.Describe(longest.Bound, members) + ", " + string(longest.By)
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\n", name, count, units.Time(time.Duration(task.Every)),
			units.Time(longest.Every), bound)
	}
	fmt.Fprintln(table, "\nHOST OR LINK\tRUNS A DAY\tFULL\tBYTES A DAY\tLIMIT\tTIME A DAY\tLIMIT")
	const shown = 20
	for _, load := range plan.Loads[:min(len(plan.Loads), shown)] {
		bytes := "-"
		if load.Budget.Bytes > 0 {
			bytes = units.Size(load.Budget.Bytes).String()
		}
		duration := "-"
		if load.Budget.Time > 0 {
			duration = units.Time(load.Budget.Time)
		}
		fmt.Fprintf(table, "%s\t%.0f\t%.1f %%\t%s\t%s\t%s\t%s\n", mesh.Describe(load.Resource, members), load.RunsADay,
			100*load.Full, units.Size(load.BytesADay), bytes, units.Time(load.TimeADay), duration)
	}
	return table.Flush()
}

func newBackup(o *options) *cobra.Command {
	return &cobra.Command{Use: "backup FILE", Short: "copy the database to a new file while the hub runs",
		Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
			if o.database() != "" {
				return errors.New("the database is a PostgreSQL server: use pg_dump")
			}
			return o.use(cmd, func(ctx context.Context, _ string, f *store.Fleet) error { return f.Backup(ctx, args[0]) })
		}}
}

// audit returns the entry of a change that this program's user makes now.
func audit(action, detail string) store.AuditEntry {
	return auditEntry(time.Now(), userName(), action, detail)
}

func auditEntry(at time.Time, by, action, detail string) store.AuditEntry {
	var random [10]byte
	rand.Read(random[:])
	return store.AuditEntry{ID: record.NewID(at, random), At: at, By: by, Action: action, Detail: detail}
}

func userName() string {
	for _, name := range []string{"SUDO_USER", "USER"} {
		if user := os.Getenv(name); user != "" {
			return user
		}
	}
	return "command line"
}
