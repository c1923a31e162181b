// Package ui serves the history and the live view as pages.
package ui

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/listener"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/watch"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

type flags struct {
	listen listener.ListenFlags
	noOpen bool
	note   string

	retests []Retest // the commands that the page may start
}

// New returns the command ui.
func New(retests ...Retest) *cobra.Command {
	f := &flags{retests: retests}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "the history and the live view as pages in a browser",
		Long: `ui shows the history as web pages: every path compared with its own past, its
results over time with their limiters, changes, single results, two results compared, and
the live view of watch. A path can be tested again from its page with the same options. ui
listens on this host only, prints an address with a private token, opens it in a browser,
and ends on Ctrl-C. With --listen it also serves other hosts, over TLS and to clients with a
token. /api/v1 has the same data as JSON (/api/v1/openapi.json). Pages load nothing from
other hosts.`,
		Example: `  fullpipe ui
  fullpipe ui --no-open
  fullpipe ui --listen 192.0.2.7:8443 --listen-cert cert.pem --listen-key key.pem --listen-token-file viewers`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen.Address, "listen", "127.0.0.1:0", "ADDR:PORT; port 0 is any that is free")
	flags.StringVar(&f.listen.Cert, "listen-cert", "", "serve over TLS, with the certificate "+
		"in this PEM `FILE`")
	flags.StringVar(&f.listen.Key, "listen-key", "", "for TLS: PEM `FILE` with the private key "+
		"of the certificate")
	flags.StringVar(&f.listen.Token, "listen-token-file", "", "clients with the bearer token in this `FILE` may read")
	flags.StringVar(&f.listen.Operator, "listen-operator-token-file", "",
		"clients with the token in this `FILE` may also "+
			"label results and start tests")
	flags.BoolVar(&f.noOpen, "no-open", false, "do not open a browser")
	history.AddStoreFlag(flags)
	flags.StringVar(&f.note, "note", "", "a `TEXT` on every page, such as the host's owner")
	return cmd
}

// opened is the object that ui prints with --json once it serves.
type opened struct {
	record.Header
	Address string `json:"address"`       // of the page
	Open    string `json:"url,omitempty"` // with the token that lets in; on this host alone
}

func (f *flags) run(cmd *cobra.Command) error {
	defer console.LogStderr(cmd)()
	l, token, err := f.listen.Listen(cmd.Context())
	if err != nil {
		return err
	}
	defer l.Close()
	cfg := web.Config{Version: build.Version(), Viewer: token, Note: f.note,
		Tests: pageTests(cmd, f.retests),
		Watch: func(ctx context.Context, each func(*record.Watch)) error { return watchForPages(ctx, cmd, each) }}
	if f.listen.Operator != "" {
		cfg.Operator, err = listener.ReadToken(cmd.Context(), "--listen-operator-token-file",
			f.listen.Operator)
		if err != nil {
			return err
		}
	}
	cfg.Record = func(_ context.Context, c web.Change) { logChange(console.LogOf(cmd), c) }
	cfg.Ours, err = f.listen.OwnHosts(l.Addr())
	if err != nil {
		return err
	}
	doc := opened{Header: present.HeaderOf(cmd, "ui"), Address: f.listen.URLs(l.Addr(), "/")[0]}
	if at, err := netip.ParseAddrPort(l.Addr().String()); err == nil && at.Addr().IsLoopback() {
		cfg.Opening = rand.Text() + rand.Text()
		doc.Open = doc.Address + "open?token=" + cfg.Opening
	}
	return history.Use(cmd, func(ctx context.Context, s *store.Store) error {
		cfg.History = s
		cfg.Speed = web.NewSpeed(listener.SpeedConfig(cmd, 16, 1<<40))
		return f.serve(ctx, cmd, l, cfg, &doc)
	})
}

// serve serves pages until it is interrupted.
func (f *flags) serve(ctx context.Context, cmd *cobra.Command, l *net.TCPListener, cfg web.Config,
	doc *opened) error {
	pages := web.New(cfg)
	defer pages.Close()
	server := listener.ServePages(ctx, cmd, l, f.listen.TLS, pages)
	defer server.Close()
	if err := f.printAddress(cmd, doc); err != nil {
		return err
	}
	if doc.Open != "" && !f.noOpen {
		done, err := browse(doc.Open)
		if err != nil {
			console.Note(cmd, "no browser was opened: %v", err)
		}
		defer done()
	}
	select {
	case <-ctx.Done(): // the way to end it
		return nil
	case <-server.Ended():
		return server.Err()
	}
}

// logChange prints a change that a client made or was refused.
func logChange(out *serverlog.Log, c web.Change) {
	kind := serverlog.Kind{Event: "changed", Trusted: true}
	if c.Refused() {
		kind = serverlog.Kind{Event: "refused"}
	}
	out.Note(kind, fmt.Sprintf("%s by %s: %d %s %s", kind.Event, c.By, c.Status, c.Action, c.Detail))
}

func (f *flags) printAddress(cmd *cobra.Command, doc *opened) error {
	if console.WantsJSON(cmd) {
		return present.JSON(cmd.OutOrStdout(), doc)
	}
	at := doc.Open
	if at == "" {
		at = doc.Address
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), at)
	return err
}

// watchForPages follows the connections that `watch` follows by default, for the live page.
func watchForPages(ctx context.Context, cmd *cobra.Command, each func(*record.Watch)) error {
	err := watch.Run(ctx, watch.Default(), func(v *watch.View) error {
		each(report.Watch(present.HeaderOf(cmd, "watch"), "", v))
		return nil
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
