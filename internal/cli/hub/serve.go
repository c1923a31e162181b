package hub

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/hook"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/hub"
	"github.com/fullpipe-net/fullpipe/internal/httpserver"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

type serveFlags struct {
	*options
	listen, public string
	page           string
	cert, key      string
	caKey          string
	nats           natsFlags
	alerts         hook.Target
	alertmanager   string
	note           string
}

func newServe(o *options) *cobra.Command {
	f := &serveFlags{options: o}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "run the hub",
		Long: `serve runs the hub until it is interrupted. It prints the page's address with a link for its
admin, and the command that joins a host. One port serves the page, the API and the agents,
over TLS: agents pin the hub's own certificate authority by their token.`,
		Example: `  fullpipe-hub serve
  fullpipe-hub serve --public https://hub.example.net:8443 --store postgres://fullpipe@db/fleet
  fullpipe-hub serve --webhook https://alerts.example.net/hook
  fullpipe-hub serve --alertmanager https://alertmanager.example.net`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.use(cmd, func(ctx context.Context, dir string, fleet *store.Fleet) error {
				return f.run(ctx, cmd, dir, fleet)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", ":8443", "`ADDR:PORT` of the page, the API and the agents")
	flags.StringVar(&f.page, "page", "127.0.0.1:0",
		"`ADDR:PORT` of the page for browsers on this host, without TLS; \"\" is "+
			"none")
	flags.StringVar(&f.public, "public", "", "the `URL` that agents connect to; default: this host's addresses")
	flags.StringVar(&f.cert, "cert", "", "a certificate that agents' systems trust, as a PEM `FILE`; default: one of the "+
		"hub's own authority")
	flags.StringVar(&f.key, "key", "", "its private key, as a PEM `FILE`")
	flags.StringVar(&f.caKey, "ca-key", "", "the `FILE` with the key that seals the hub's own authority in the database; "+
		"default: ca.key in the state directory")
	flags.StringVar(&f.note, "note", "", "a line on every page")
	f.nats.add(flags)
	f.alerts.Register(flags)
	flags.StringVar(&f.alertmanager, "alertmanager", "", "send the open incidents each minute to the "+
		"Alertmanager at this `URL`")
	return cmd
}

// hubFile is the address of a hub that serves, for the hub's other commands.
type hubFile struct {
	URLs []string `json:"urls"`
	Pin  string   `json:"pin,omitempty"`
}

const hubFileName = "hub.json"

func (f *serveFlags) run(ctx context.Context, cmd *cobra.Command, dir string, fleet *store.Fleet) error {
	if (f.cert == "") != (f.key == "") {
		return exit.Usage("--cert", "a certificate and its key belong together", "--cert FILE --key FILE")
	}
	receivers, err := f.receivers()
	if err != nil {
		return err
	}
	defer console.LogStderr(cmd)()
	l, err := socket.Listen(ctx, f.listen, socket.Options{})
	if err != nil {
		return err
	}
	defer l.Close()
	urls, names, err := f.names(l.Addr().(*net.TCPAddr).AddrPort())
	if err != nil {
		return err
	}
	secure, pin, err := f.secure(ctx, fleet, dir, names)
	if err != nil {
		return err
	}
	file, err := json.Marshal(hubFile{urls, pin})
	if err != nil {
		return err
	}
	if err := atomicfile.WritePrivate(ctx, filepath.Join(dir, hubFileName), append(file, '\n')); err != nil {
		return err
	}
	events := console.EventLog(cmd)
	defer events.Close()
	wire := &hub.Wire{}
	h := hub.New(hub.Config{Fleet: fleet, Orders: wire, URLs: f.nats.urls(urls), OwnBus: f.nats.url == "",
		Announce: wire.Announce, Event: func(e hub.Event) { printEvent(cmd, events, e) }, Receivers: receivers,
		Send: f.report, Sync: newAlertmanagers(urls[0]).sync})
	door, agentURLs, end, err := f.nats.start(ctx, dir, wire, h.Admit)
	if err != nil {
		return err
	}
	defer end()
	if err := wire.Listen(ctx, h); err != nil {
		return err
	}
	page, names, err := f.listenPage(ctx)
	if err != nil {
		return err
	}
	admin := rand.Text()
	pages := web.New(f.pages(fleet, urls, pin, admin, names, func(ctx context.Context, c web.Change) {
		recordChange(ctx, cmd, events, fleet, c)
	}))
	defer pages.Close()
	open := urls[0] + "/open?token=" + admin
	if page != nil {
		local := httpserver.Start(page, httpserver.Config{Handler: pages, BaseContext: ctx, Log: console.LogOf(cmd)})
		defer local.Close()
		open = fmt.Sprintf("http://%s/open?token=%s", page.Addr(), admin)
	}
	mux := http.NewServeMux()
	mux.Handle(bus.JoinPath, hub.JoinHandler(fleet, agentURLs, func(store.Agent) { h.Refresh() }))
	if door != nil {
		mux.Handle(bus.Path, door)
	}
	mux.Handle("/", pages)
	server := httpserver.Start(l, httpserver.Config{Handler: mux, TLS: secure, BaseContext: ctx, MaxConns: maxConns(),
		MaxUnproven: admission.MaxPending, Log: console.LogOf(cmd)})
	defer server.Close()
	if err := f.ready(ctx, cmd, fleet, urls, pin, open); err != nil {
		return err
	}
	return h.Run(ctx)
}

// maxConns returns the connections that the process's file limit allows, with room for the database.
func maxConns() int {
	const reserve, unlimited = 200, 1 << 20
	files := socket.MostFiles()
	if files <= 0 || files > unlimited {
		files = unlimited
	}
	return max(files-reserve, 1)
}

// pages returns the configuration of the pages. Over TLS any host name is ours: the browser has compared it with the
// certificate. Without TLS it is one of names, another may be DNS rebinding.
func (f *serveFlags) pages(fleet *store.Fleet, urls []string, pin, admin string, names []string,
	record func(context.Context, web.Change)) web.Config {
	return web.Config{History: fleet.Store(), Version: build.Version(), Opening: admin, Note: f.note, Record: record,
		Ours: func(r *http.Request) bool { return r.TLS != nil || slices.Contains(names, r.Host) },
		Fleet: &web.Fleet{Store: fleet,
			Request: func(ctx context.Context, a, b string) (store.Job, error) {
				return hub.Request(ctx, fleet, a, b, time.Now(), requestTime)
			},
			Token: func(ctx context.Context, by string) (string, error) {
				now := time.Now()
				secret, err := hub.NewToken(ctx, fleet, store.Enrolment{Uses: 1, Until: now.Add(time.Hour), By: by}, now)
				return bus.Token{URLs: urls, Secret: secret, Pin: pin}.String(), err
			}}}
}

// listenPage listens on a loopback address for the pages without TLS, so that a browser on this host shows no warning.
// names are its Hosts. Without --page there is no listener.
func (f *serveFlags) listenPage(ctx context.Context) (l *net.TCPListener, names []string, err error) {
	if f.page == "" {
		return nil, nil, nil
	}
	l, err = socket.Listen(ctx, f.page, socket.Options{})
	if err != nil {
		return nil, nil, err
	}
	at := l.Addr().(*net.TCPAddr).AddrPort()
	if !at.Addr().IsLoopback() {
		l.Close()
		return nil, nil, exit.Usage("--page", fmt.Sprintf("%s is not an address of this host alone", at.Addr()),
			"--page 127.0.0.1:8080, and --listen for other hosts")
	}
	return l, []string{at.String(), fmt.Sprintf("localhost:%d", at.Port())}, nil
}

// names returns the hub's URLs for tokens, and the names and addresses for its certificate.
func (f *serveFlags) names(at netip.AddrPort) (urls, names []string, err error) {
	host, _ := os.Hostname()
	names = []string{"localhost", "127.0.0.1", "::1"}
	if host != "" {
		names = append(names, host)
	}
	addresses := []netip.Addr{at.Addr().Unmap()}
	if at.Addr().IsUnspecified() {
		addresses = socket.HostAddresses()
	}
	for _, a := range addresses {
		names = append(names, a.String())
		urls = append(urls, "https://"+net.JoinHostPort(a.String(), strconv.Itoa(int(at.Port()))))
	}
	if len(urls) == 0 {
		urls = []string{fmt.Sprintf("https://127.0.0.1:%d", at.Port())}
	}
	if f.public == "" {
		return urls, names, nil
	}
	u, err := url.Parse(f.public)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, nil, exit.Usage("--public", fmt.Sprintf("%q is not https://HOST[:PORT]", f.public),
			"--public https://hub.example.net:8443")
	}
	return []string{"https://" + u.Host}, append(names, u.Hostname()), nil
}

// secure returns the TLS configuration, and the pin of the hub's own authority.
func (f *serveFlags) secure(ctx context.Context, fleet *store.Fleet, dir string, names []string) (*tls.Config, string,
	error) {
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, "", exit.Usage("--cert", err.Error(), "a PEM file with a certificate, and --key with its key")
		}
		return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}}, "", nil
	}
	slices.Sort(names)
	ca, err := hub.OpenCA(ctx, fleet, dir, f.caKey, slices.Compact(names))
	if err != nil {
		return nil, "", err
	}
	return ca.TLS(), bus.Pin(ca.Cert), nil
}

// firstToken admits the first hosts: enough for a try, and for a day.
const (
	firstUses = 100
	firstTime = 24 * time.Hour
)

// readyLine is the first line of serve --json.
type readyLine struct {
	At    time.Time `json:"at"`
	Event string    `json:"event"` // ready
	URLs  []string  `json:"urls"`
	Open  string    `json:"open"` // the page, with an admin's token
	Join  string    `json:"join"` // a token for agents
}

// ready prints the page's address and the command that joins a host.
func (f *serveFlags) ready(ctx context.Context, cmd *cobra.Command, fleet *store.Fleet, urls []string, pin,
	open string) error {
	now := time.Now()
	secret, err := hub.NewToken(ctx, fleet, store.Enrolment{Uses: firstUses, Until: now.Add(firstTime), By: "serve"}, now)
	if err != nil {
		return err
	}
	join := bus.Token{URLs: urls, Secret: secret, Pin: pin}.String()
	if console.WantsJSON(cmd) {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(readyLine{now.UTC(), "ready", urls, open, join})
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "page (admin): %s\njoin a host (%d times, %d h):\n"+
		"  FULLPIPE_JOIN=%s fullpipe agent\n", open, firstUses, int(firstTime.Hours()), join)
	return err
}
