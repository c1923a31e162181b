package hub

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus/callout"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus/embed"
	"github.com/fullpipe-net/fullpipe/internal/fleet/hub"
)

// natsFlags name a NATS server of the user's, in place of the embedded one.
type natsFlags struct{ url, public, account string }

func (f *natsFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.url, "nats", "", "the `URL` of a NATS server of yours; default: one in the hub's process")
	flags.StringVar(&f.public, "nats-public", "", "the `URL`s at which agents reach that server, separated by commas; "+
		"default: --nats")
	flags.StringVar(&f.account, "nats-account", "$G", "its `ACCOUNT` for the agents")
}

// natsConfiguration is a file of the state directory: the lines that the configuration of a NATS server needs.
const natsConfiguration = "nats-server.conf"

// start connects the hub to its bus. door forwards the agents' WebSocket to an embedded server and is nil without one;
// urls are where agents connect to, none for the hub itself.
func (f *natsFlags) start(ctx context.Context, dir string, wire *hub.Wire,
	admit func(context.Context, string, netip.Addr) (string, error)) (door http.Handler, urls []string, end func(),
	err error) {
	if f.url == "" {
		return startEmbedded(wire, admit)
	}
	u, err := url.Parse(f.url)
	if err != nil || u.Host == "" {
		return nil, nil, nil, exit.Usage("--nats", "not a URL", "--nats nats://nats.example.net:4222")
	}
	user, userPublic, err := bus.StoredKey(filepath.Join(dir, "nats-hub.seed"), nkeys.CreateUser)
	if err != nil {
		return nil, nil, nil, err
	}
	issuer, issuerPublic, err := bus.StoredKey(filepath.Join(dir, "nats-issuer.seed"), nkeys.CreateAccount)
	if err != nil {
		return nil, nil, nil, err
	}
	needs := filepath.Join(dir, natsConfiguration)
	if err := atomicfile.WritePrivate(ctx, needs, []byte(callout.Configuration(userPublic, issuerPublic))); err != nil {
		return nil, nil, nil, err
	}
	wire.Conn, err = nats.Connect(f.url, nats.Name("fullpipe-hub"), nats.Nkey(userPublic, user.Sign),
		nats.MaxReconnects(-1))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("the NATS server at %s: %w; its configuration file needs: include %q", u.Host, err,
			needs)
	}
	if err := callout.Serve(wire.Conn, issuer, f.account, admit); err != nil {
		wire.Conn.Close()
		return nil, nil, nil, err
	}
	return nil, f.urls(nil), wire.Conn.Close, nil
}

// urls returns where agents connect: to a server of the user's, or to the hub.
func (f *natsFlags) urls(hub []string) []string {
	switch {
	case f.url == "":
		return hub
	case f.public != "":
		return strings.Split(f.public, ",")
	}
	return []string{f.url}
}

func startEmbedded(wire *hub.Wire, admit embed.Admit) (door http.Handler, urls []string, end func(), err error) {
	server, err := embed.Start(admit, rand.Text())
	if err != nil {
		return nil, nil, nil, err
	}
	wire.Kick = server.Disconnect
	wire.Conn, err = server.Connect()
	if err != nil {
		server.Shutdown()
		return nil, nil, nil, err
	}
	return server.Handler(), nil, func() {
		wire.Conn.Close()
		server.Shutdown()
	}, nil
}
