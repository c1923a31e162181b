package hub

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/fleet/hub"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// roles are the roles of users, the least first.
var roles = []string{"viewer", "operator", "admin"}

func newUsers(o *options) *cobra.Command {
	cmd := &cobra.Command{Use: "user", Short: "list, add or remove users of the page and the API", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.use(cmd, func(ctx context.Context, _ string, f *store.Fleet) error {
				accounts, err := f.Accounts(ctx)
				if err != nil {
					return err
				}
				table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(table, "USER\tROLE")
				for _, a := range accounts {
					fmt.Fprintf(table, "%s\t%s\n", a.Name, a.Role)
				}
				return table.Flush()
			})
		}}
	var role string
	add := &cobra.Command{Use: "add NAME", Short: "add a user, or give one another role, and print a new token",
		Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(roles, role) {
				return exit.Usage("--role", fmt.Sprintf("%q is no role", role), "viewer, operator or admin")
			}
			if !hub.AgentName.MatchString(args[0]) {
				return exit.Usage(args[0], "a name has letters, digits, '.', '_' and '-'", "fullpipe-hub user add ann")
			}
			token := rand.Text()
			sum := sha256.Sum256([]byte(token))
			return o.use(cmd, func(ctx context.Context, _ string, f *store.Fleet) error {
				err := f.SetAccount(ctx, store.Account{Name: args[0], Role: role, TokenHash: hex.EncodeToString(sum[:])})
				if err == nil {
					err = f.Audit(ctx, audit("user add", args[0]+" "+role))
				}
				if err == nil {
					_, err = fmt.Fprintln(cmd.OutOrStdout(), token)
				}
				return err
			})
		}}
	add.Flags().StringVar(&role, "role", "viewer",
		"viewer, operator or admin; a viewer reads, an operator tests too, an admin changes mesh, tokens and hosts")
	remove := &cobra.Command{Use: "remove NAME", Short: "remove a user", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.use(cmd, func(ctx context.Context, _ string, f *store.Fleet) error {
				if err := f.SetAccount(ctx, store.Account{Name: args[0]}); err != nil {
					return err
				}
				return f.Audit(ctx, audit("user remove", args[0]))
			})
		}}
	cmd.AddCommand(add, remove)
	return cmd
}
