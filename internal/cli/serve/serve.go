// Package serve is the command serve, the far end for other hosts.
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
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/farend"
	"github.com/fullpipe-net/fullpipe/internal/cli/listener"
	"github.com/fullpipe-net/fullpipe/internal/cli/serverkey"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// New returns the command serve.
func New() *cobra.Command {
	var o options
	var untilEOF bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "run the far end for fullpipe on other hosts",
		Long: `serve serves fullpipe clients with its key until it is interrupted.

Without --key it creates a key, prints it and saves it in --key-file if given. Clients
cannot change this host. The --max flags limit the clients: if all slots are taken the
server reports busy, a test above a limit is refused with the limit's name, and a test that
exceeds it anyway is ended. iperf3 clients have slots of their own, so that clients without
the key never take those of clients with it.

--iperf2 serves iperf 2 clients (iperf -c) on port 5001: TCP, also with -R, and UDP with the
report that the client prints. Connections that one host has open at the same time count as
one test.

--web adds a speed test for browsers: /test shows what limits the connection, from this
host's kernel, and /ndt/v7 serves ndt7 clients. Anybody who reaches that port may test,
unless --web-token-file is given. Results get a link and are stored in the history.`,
		Example: `  fullpipe serve
  fullpipe serve --listen :5202 --key-file key
  fullpipe serve --iperf3     # serves iperf3 -c of any host too
  fullpipe serve --drops      # reports where this host drops clients' packets
  fullpipe serve --iperf2     # serves iperf -c (version 2) on port 5001 too
  fullpipe serve --web :8443 --web-cert cert.pem --web-key key.pem
  fullpipe serve --iperf3 --max-tests 1 --max-time 30s --max-bytes 10GB`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Usage(args[0], "serve takes no arguments", cmd.CommandPath()+" --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags()); err != nil {
				return err
			}
			if untilEOF {
				return serveUntilEOF(cmd, o)
			}
			return serve(cmd, o)
		},
	}
	o.key.Add(cmd.Flags())
	cmd.Flags().Lookup("key-file").Usage = "a `file` with the server's key; if the file does " +
		"not exist, it is created, readable only by its owner"
	cmd.Flags().StringVar(&o.keys, "keys", "", "a `file` of keys by name, each with its own limits (fullpipe key "+
		"writes it)")
	cmd.Flags().StringVar(&o.listen, "listen", server.DefaultAddress, "`ADDR:PORT` to listen on; port 0 chooses one")
	cmd.Flags().BoolVar(&o.iperf3, "iperf3", false, "also serve iperf3 clients, which need no key")
	cmd.Flags().StringVar(&o.iperf2, "iperf2", "", "also serve iperf 2 clients at `ADDR:PORT`; default: "+
		defaultIperf2Address)
	cmd.Flags().Lookup("iperf2").NoOptDefVal = defaultIperf2Address
	cmd.Flags().BoolVar(&o.exclusive, "exclusive", false, "only one client measures at a time; "+
		"others wait and see their place in the queue, iperf3 clients see that the server "+
		"is busy")
	o.drops.Add(cmd.Flags())
	cmd.Flags().BoolVarP(&o.quiet, "quiet", "q", false, "print nothing but errors")
	o.limits.add(cmd.Flags())
	o.web.add(cmd.Flags())
	cmd.Flags().BoolVar(&untilEOF, "until-eof", false, "exit when standard input closes, and choose another port if the "+
		"requested one is taken (used by ssh://)")
	return cmd
}

// options are serve's flags.
type options struct {
	key           serverkey.KeyFlags
	keys          string
	listen        string
	iperf2        string // "": do not serve
	iperf3, quiet bool
	exclusive     bool
	drops         farend.DropsFlag
	limits        limits
	web           webFlags
}

func (o *options) check(flags *pflag.FlagSet) error {
	if err := o.drops.Check(); err != nil {
		return err
	}
	if err := checkListen("--listen", o.listen); err != nil {
		return err
	}
	if o.iperf2 != "" {
		if err := checkListen("--iperf2", o.iperf2); err != nil {
			return err
		}
	}
	if err := o.web.check(flags); err != nil {
		return err
	}
	return o.limits.check()
}

// serveUntilEOF runs a server that exits when its standard input closes, so that it does not outlive its parent.
func serveUntilEOF(cmd *cobra.Command, o options) error {
	o.iperf3 = false
	o.iperf2 = ""
	o.quiet = false
	o.web.Address = ""
	o.drops = farend.DropsAuto
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
		return nil // standard input closed before the server listened
	}
	return err
}

func serve(cmd *cobra.Command, o options) error {
	made, err := o.key.Create(cmd.Context())
	if err != nil {
		return err
	}
	key, err := o.key.Find(cmd.Context())
	if err != nil {
		return err
	}
	if key == nil {
		k := probe.NewKey() // with --keys, none is printed
		key = &k
		made = o.keys == ""
	}
	ctx := cmd.Context()
	log := newServeLog(cmd, o.quiet)
	defer log.close()
	config := server.Config{Address: o.listen, Key: *key, Software: build.Version(), Event: log.event}
	clients := configureIperf3(&config)
	config.AllowUnauthenticated = o.iperf3
	config.ShareWindows = true
	config.Exclusive = o.exclusive
	if few := o.limits.fitFileLimit(socket.MostFiles()); few != "" {
		console.Note(cmd, "note: %s", few)
	}
	o.limits.apply(&config, clients)
	losses, err := o.drops.Watch()
	if err != nil {
		return err
	}
	defer losses.Close()
	config.Losses = losses.Begin
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
		return listener.Failure("--listen", o.listen, err)
	}
	clients.Window = s.Window
	clients.TrackConcurrent = s.Begin
	clients.Turn = s.TryTurn
	wait, err := listener.ServeFlows(ctx, s.Addr().String(), clients)
	switch {
	case err == nil:
		clients.UDP = true
		defer wait()
	case o.iperf3:
		s.Close()
		return listener.Failure("--listen", o.listen+" (UDP)", err)
	}
	if o.iperf2 != "" {
		ctx, stop := context.WithCancel(ctx)
		wait, err := o.serveIperf2(ctx, log, s)
		if err != nil {
			stop()
			s.Close()
			return err
		}
		defer wait()
		defer stop()
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
		return fmt.Errorf("print the address: %w", err)
	}
	return s.Serve(ctx) // an interrupt is the normal end
}

// serveWeb also serves browsers and prints the address.
func (o *options) serveWeb(ctx context.Context, cmd *cobra.Command, log *eventLog) (end func(), err error) {
	urls, end, err := o.web.serve(ctx, cmd, log)
	if err != nil {
		return nil, err
	}
	if !o.quiet {
		log.events.Print(serverlog.Kind{Event: "web", Trusted: true}, func() string {
			return webReady(urls, console.WantsJSON(cmd))
		})
	}
	return end, nil
}

func checkListen(flag, listen string) error {
	bad := func(why string) error {
		return exit.Usage(flag, fmt.Sprintf("%q %s", listen, why), "ADDR:PORT, as in :5201 or 192.0.2.1:5202")
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
