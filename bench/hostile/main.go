//go:build linux

// Command hostile plays every far end and writes every file that means harm, by name, so
// that each feature can be tried against all of them: `hostile list` names them with their
// kinds.
//
//	hostile NAME                       a server of kind native, iperf3, http, ndt7 or postgres; prints where it
//	                                   listens; runs until standard input ends
//	hostile NAME                       a file of kind capture, plan, journal, record, snapshot or ping, on
//	                                   standard output
//	hostile NAME                       a hub of a fleet, of kind hub; prints a token for the agent that it attacks, OVER
//	                                   after the attack, and ADMITTED for an attack that succeeded
//	hostile NAME TOKEN                 an agent of a fleet, of kind agent; prints ADMITTED for an attack that succeeded
//	hostile NAME [ARGUMENT...]         a replacement of the ssh program, for kind ssh
//	hostile NAME ADDRESS               a client of a server, for kind stranger, or of a page, for kind visitor
//	hostile markup < DOCUMENT          a stored document whose texts are markup
//	hostile strangers ADDRESS N AT-ONCE HOLD   N connections of all strangers in turn, each kept for HOLD
//	hostile web-clients ADDRESS N              N at a time of a speed test's server, until an interrupt
//	hostile visitors ADDRESS N AT-ONCE HOLD    likewise, of all visitors
//
// FULLPIPE_KEY is the key that native far ends share with their client. Use it on loopback
// and in namespaces alone.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// attack is text that would control a terminal or a page, and would begin a line of its own.
const attack = "x\x1b[2J\x1b]0;t\x07\u009b31m\r\u202e\u2028\x7f<img src=x onerror=hurt()>\nFORGED"

// farEnd is an entry of the corpus. Its kind decides which one of the functions is set.
type farEnd struct {
	name, kind string
	server     func(conn *net.TCPConn)                       // native, iperf3, http, ndt7, postgres: each connection
	stranger   func(conn *net.TCPConn, over <-chan struct{}) // stranger, visitor: a client, until over closes
	program    func(in io.Reader, out, errs io.Writer) error // ssh
	file       func(out io.Writer) error                     // a file's content
	hub        *hostileHub                                   // hub
	agent      func(a *hostileAgent) error                   // agent
}

// rooms create the far ends of a kind; every other kind is a file's.
var rooms = map[string]func() []farEnd{"native": nativeServers, "iperf3": iperf3Servers, "http": webServers,
	"ndt7": ndt7Servers, "postgres": postgresServers, "ssh": sshPrograms, "stranger": strangers, "visitor": visitors,
	"hub": hostileHubs, "agent": hostileAgents}

func corpus() (all []farEnd) {
	for _, room := range rooms {
		all = append(all, room()...)
	}
	return append(all, files()...)
}

// find creates only the kinds that a name can belong to, by its prefix: the corpus has hundreds of megabytes.
func find(name string) (farEnd, error) {
	kind, _, _ := strings.Cut(name, "-")
	room := rooms[kind]
	if room == nil {
		room = files
	}
	for _, f := range room() {
		if f.name == name {
			return f, nil
		}
	}
	return farEnd{}, fmt.Errorf("no far end is called %q", name)
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: hostile list | hostile NAME [ADDRESS]")
	}
	switch args[0] {
	case "list":
		for _, f := range corpus() {
			fmt.Println(f.name, f.kind)
		}
		return nil
	case "markup":
		return markup(os.Stdin, os.Stdout)
	case "strangers":
		return crowd(strangers(), args[1:])
	case "web-clients":
		return besiege(args[1:])
	case "visitors":
		return crowd(visitors(), args[1:])
	case "udp-spoof":
		return spoof(args[1:])
	}
	f, err := find(args[0])
	if err != nil {
		return err
	}
	switch {
	case f.server != nil:
		return serve(f.server)
	case f.hub != nil:
		return f.hub.play()
	case f.file != nil:
		return f.file(os.Stdout)
	case f.program != nil:
		return f.program(os.Stdin, os.Stdout, os.Stderr)
	case len(args) != 2:
		return errors.New("usage: hostile NAME ADDRESS")
	case f.agent != nil:
		return joinAndAttack(args[1], f.agent)
	default:
		conn, err := net.Dial("tcp", args[1])
		if err != nil {
			return err
		}
		defer conn.Close()
		f.stranger(conn.(*net.TCPConn), ended())
		return nil
	}
}

// ended returns a channel that is closed at the end of standard input.
func ended() <-chan struct{} {
	over := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(over)
	}()
	return over
}

// serve plays a server for every connection to a port of loopback.
func serve(play func(*net.TCPConn)) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				play(conn.(*net.TCPConn))
			}()
		}
	}()
	<-ended()
	return l.Close()
}

// silent reads everything and sends nothing until the other end leaves.
func silent(conn net.Conn) { io.Copy(io.Discard, conn) }

// crowd runs come with the given arguments and prints the number of connections made.
func crowd(ways []farEnd, args []string) error {
	if len(args) != 4 {
		return errors.New("usage: hostile strangers|visitors ADDRESS N AT-ONCE HOLD")
	}
	n, err := strconv.Atoi(args[1])
	atOnce, err2 := strconv.Atoi(args[2])
	hold, err3 := time.ParseDuration(args[3])
	if err := errors.Join(err, err2, err3); err != nil {
		return err
	}
	fmt.Println(come(ways, args[0], n, atOnce, hold))
	return nil
}
