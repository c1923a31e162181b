package main

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/watch"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

type uiFlags struct {
	listen listenFlags
	noOpen bool
	note   string

	retests []retest // what the page may start
}

func newUI(retests ...retest) *cobra.Command {
	f := &uiFlags{retests: retests}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "the history and the live view as pages in a browser",
		Long: `ui serves what history keeps as pages: every path against its own past, its results over
time with what limited them, changes, single results, two beside each other, and what watch
sees now. A path can be tested again from its page, as its results were measured. It listens
on this host alone, prints an address with a token that no other user has, opens it in a
browser, and ends on Ctrl-C. With --listen other hosts are served too: over TLS, to who
brings a token. /api/v1 has the same as JSON (/api/v1/openapi.json). No page asks another
host for anything.`,
		Example: `  fullpipe ui
  fullpipe ui --no-open
  fullpipe ui --listen 192.0.2.7:8443 --listen-cert cert.pem --listen-key key.pem --listen-token-file viewers`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen.address, "listen", "127.0.0.1:0", "ADDR:PORT; port 0 is any that is free")
	flags.StringVar(&f.listen.cert, "listen-cert", "", "over TLS: the certificate, as a PEM `FILE`")
	flags.StringVar(&f.listen.key, "listen-key", "", "over TLS: the certificate's private key, as a PEM `FILE`")
	flags.StringVar(&f.listen.token, "listen-token-file", "", "who brings the bearer token in this `FILE` may look")
	flags.StringVar(&f.listen.operator, "listen-operator-token-file", "", "who brings the one in this `FILE` may label "+
		"results and test too")
	flags.BoolVar(&f.noOpen, "no-open", false, "open no browser")
	addStoreFlag(flags)
	flags.StringVar(&f.note, "note", "", "a line that stands on every page, as whose host this is")
	return cmd
}

// opened is the object that ui prints with --json once it serves.
type opened struct {
	record.Header
	Address string `json:"address"`       // of the page
	Open    string `json:"url,omitempty"` // with the token that lets in; on this host alone
}

func (f *uiFlags) run(cmd *cobra.Command) error {
	defer logStderr(cmd)()
	l, token, err := f.listen.listen(cmd.Context())
	if err != nil {
		return err
	}
	defer l.Close()
	cfg := web.Config{Version: version(), Viewer: token, Encrypted: f.listen.cert != "", Note: f.note,
		Tests: pageTests(cmd, f.retests),
		Watch: func(ctx context.Context, each func(*record.Watch)) error { return watchForPages(ctx, cmd, each) }}
	if f.listen.operator != "" {
		if cfg.Operator, err = readToken(cmd.Context(), "--listen-operator-token-file", f.listen.operator); err != nil {
			return err
		}
	}
	if cfg.Ours, err = f.listen.ours(l.Addr()); err != nil {
		return err
	}
	scheme := "http"
	if cfg.Encrypted {
		scheme = "https"
	}
	doc := opened{Header: headerOf(cmd, "ui"), Address: fmt.Sprintf("%s://%s/", scheme, l.Addr())}
	if at, err := netip.ParseAddrPort(l.Addr().String()); err == nil && at.Addr().IsLoopback() {
		cfg.Opening = rand.Text() + rand.Text()
		doc.Open = doc.Address + "open?token=" + cfg.Opening
	}
	return withHistory(cmd, func(ctx context.Context, s *store.Store) error {
		cfg.History = s
		cfg.Speed = web.NewSpeed(speedConfig(cmd, 16, 1<<40))
		return f.serve(ctx, cmd, l, cfg, &doc)
	})
}

// serve answers until it is interrupted.
func (f *uiFlags) serve(ctx context.Context, cmd *cobra.Command, l *net.TCPListener, cfg web.Config,
	doc *opened) error {
	pages := web.New(cfg)
	defer pages.Close()
	server := servePages(ctx, cmd, l, f.listen.tls, pages)
	defer server.Close()
	if err := f.tell(cmd, doc); err != nil {
		return err
	}
	if doc.Open != "" && !f.noOpen {
		done, err := browse(doc.Open)
		if err != nil {
			note(cmd, "no browser was opened: %v", err)
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

func (f *uiFlags) tell(cmd *cobra.Command, doc *opened) error {
	if wantsJSON(cmd) {
		return printJSON(cmd.OutOrStdout(), doc)
	}
	at := doc.Open
	if at == "" {
		at = doc.Address
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), at)
	return err
}

// ours says which hosts a request may name: over TLS those of the certificate, else the
// address itself and localhost, with its port.
func (f *listenFlags) ours(at net.Addr) (func(host string) bool, error) {
	own, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return nil, err
	}
	var leaf *x509.Certificate // nil: no TLS
	if f.tls != nil {
		leaf = f.tls.Certificates[0].Leaf
	}
	return func(host string) bool {
		name, port, err := net.SplitHostPort(host)
		if err != nil {
			name = strings.Trim(host, "[]")
			port = "80"
			if leaf != nil {
				port = "443"
			}
		}
		if leaf != nil && leaf.VerifyHostname(name) == nil {
			return true
		}
		ip, err := netip.ParseAddr(name)
		return port == fmt.Sprint(own.Port()) && (err == nil && ip == own.Addr() ||
			own.Addr().IsLoopback() && strings.EqualFold(name, "localhost"))
	}, nil
}

// watchForPages follows this host's connections, those within it too, as the live page
// shows them.
func watchForPages(ctx context.Context, cmd *cobra.Command, each func(*record.Watch)) error {
	cfg := watch.Config{Every: 2 * time.Second, Sample: 100 * time.Millisecond}
	err := watch.Run(ctx, cfg, func(v *watch.View) error {
		each(report.Watch(headerOf(cmd, "watch"), "", v))
		return nil
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
