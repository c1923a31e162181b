// Package serve is the far end for fullpipe on other hosts.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/listener"
	"github.com/fullpipe-net/fullpipe/internal/cli/serverkey"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// New returns the command serve.
func New() *cobra.Command {
	var o serveOptions
	var untilEOF bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "be the far end for fullpipe on other hosts",
		Long: `serve answers fullpipe clients that hold its key until it is interrupted.

Without a key given it makes a new one and prints it, and keeps it in --key-file where one
is named. Clients cannot change this host.
What they may ask of it is bounded by the --max flags: one client too many is told that
the server is busy, a test beyond a bound is refused with the bound's name, and one that
goes beyond it all the same is ended. iperf3's clients have places of their own, so that
strangers never take those of clients with the key.

With --web it is also a speed test for browsers, for those who have nothing installed: /test
says what limits them, by what this host's kernel knows of their connections, and ndt7's
clients are answered at /ndt/v7. Anybody who reaches that port may test, unless
--web-token-file is given. Results get a link and are kept in the history.`,
		Example: `  fullpipe serve
  fullpipe serve --listen :5202 --key-file key
  fullpipe serve --iperf3     # any host's iperf3 -c is answered too
  fullpipe serve --web :8443 --web-cert cert.pem --web-key key.pem
  fullpipe serve --iperf3 --max-tests 1 --max-time 30s --max-bytes 10GB`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Usage(args[0], "serve takes no arguments", cmd.CommandPath()+" --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if untilEOF {
				return serveUntilEOF(cmd, o)
			}
			return serve(cmd, o)
		},
	}
	o.key.Add(cmd.Flags())
	cmd.Flags().Lookup("key-file").Usage = "a `file` that holds the server's key; it is made, for its owner alone to " +
		"read, where it is missing"
	cmd.Flags().StringVar(&o.keys, "keys", "", "a `file` of keys by name, each with its own bounds (fullpipe key "+
		"writes it)")
	cmd.Flags().StringVar(&o.listen, "listen", server.DefaultAddress, "`ADDR:PORT` to listen on; port 0 chooses one")
	cmd.Flags().BoolVar(&o.iperf3, "iperf3", false, "also admit iperf3 clients, who need no key")
	cmd.Flags().BoolVar(&o.exclusive, "exclusive", false, "one client measures at a time; others wait their turn and are "+
		"told their place, iperf3's are told that it is busy")
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "print nothing but errors")
	o.limits.add(cmd.Flags())
	o.web.add(cmd.Flags())
	cmd.Flags().BoolVar(&untilEOF, "until-eof", false, "end with standard input, and choose another port where the "+
		"asked one is taken (as ssh:// starts it)")
	return cmd
}

// serveOptions are serve's flags.
type serveOptions struct {
	key           serverkey.KeyFlags
	keys          string
	listen        string
	iperf3, quiet bool
	exclusive     bool
	limits        serveLimits
	web           webFlags
}

func (o *serveOptions) check() error {
	if err := checkListen(o.listen); err != nil {
		return err
	}
	if err := o.web.check(); err != nil {
		return err
	}
	return o.limits.check()
}

// serveUntilEOF is a far end that must not outlive who started it.
func serveUntilEOF(cmd *cobra.Command, o serveOptions) error {
	o.iperf3 = false
	o.quiet = false
	o.web.Address = ""
	whole := cmd.Context()
	ctx, cancel := context.WithCancel(whole)
	defer cancel()
	cmd.SetContext(ctx)
	go func() {
		io.Copy(io.Discard, cmd.InOrStdin())
		cancel()
	}()
	err := serve(cmd, o)
	if errors.Is(err, syscall.EADDRINUSE) {
		host, _, _ := net.SplitHostPort(o.listen)
		o.listen = net.JoinHostPort(host, "0")
		err = serve(cmd, o)
	}
	if errors.Is(err, context.Canceled) && whole.Err() == nil {
		return nil // standard input ended before anything listened
	}
	return err
}

func serve(cmd *cobra.Command, o serveOptions) error {
	made, err := o.key.Create(cmd.Context())
	if err != nil {
		return err
	}
	key, err := o.key.Find(cmd.Context())
	if err != nil {
		return err
	}
	if key == nil {
		k := probe.NewKey() // with --keys nobody's
		key = &k
		made = o.keys == ""
	}
	ctx := cmd.Context()
	log := newServeLog(cmd, o.quiet)
	defer log.close()
	config := server.Config{Address: o.listen, Key: *key, Software: build.Version(), Event: log.event}
	clients := admitIperf3(&config)
	config.Strangers = o.iperf3
	config.ShareWindows = true
	config.Exclusive = o.exclusive
	if few := o.limits.fit(socket.MostFiles()); few != "" {
		console.Note(cmd, "note: %s", few)
	}
	o.limits.apply(&config, clients)
	if exposed := o.key.Exposed(); exposed != "" && !o.quiet {
		console.Note(cmd, "note: %s", exposed)
	}
	if o.keys != "" {
		ring, err := serverkey.NewKeyring(ctx, o.keys, func(text string) {
			log.notes.Note(serverlog.Kind{Event: "keys"},
				text)
		})
		if err != nil {
			return err
		}
		config.Holders = ring.Now
	}
	s, err := server.New(ctx, config)
	if err != nil {
		return listener.Failure(o.listen, err)
	}
	clients.Window = s.Window
	clients.Running = s.Begin
	clients.Turn = s.TryTurn
	wait, err := listener.ServeFlows(ctx, s.Addr().String(), clients)
	switch {
	case err == nil:
		clients.UDP = true
		defer wait()
	case o.iperf3:
		s.Close()
		return listener.Failure(o.listen+" (UDP)", err)
	}
	if o.web.Address != "" {
		end, err := o.serveWeb(ctx, cmd, log)
		if err != nil {
			s.Close()
			return err
		}
		defer end()
	}
	if err := log.ready(ctx, s.Addr().String(), *key, made); err != nil {
		s.Close()
		return fmt.Errorf("tell where it listens: %w", err)
	}
	return s.Serve(ctx) // an interrupt is how serving ends
}

// serveWeb serves browsers beside, and says where.
func (o *serveOptions) serveWeb(ctx context.Context, cmd *cobra.Command, log *serveLog) (end func(), err error) {
	at, end, err := o.web.serve(ctx, cmd, log)
	if err != nil {
		return nil, err
	}
	scheme := "http"
	if o.web.Cert != "" {
		scheme = "https"
	}
	if !o.quiet {
		log.events.Print(serverlog.Kind{Event: "web", Trusted: true}, func() string {
			return webReady(fmt.Sprintf("%s://%s/test", scheme, at), console.WantsJSON(cmd))
		})
	}
	return end, nil
}

func checkListen(listen string) error {
	bad := func(why string) error {
		return exit.Usage("--listen", fmt.Sprintf("%q %s", listen, why), "ADDR:PORT, as in :5201 or 192.0.2.1:5202")
	}
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return bad("is not ADDR:PORT")
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return bad("has no port between 0 and 65535")
	}
	return nil
}
